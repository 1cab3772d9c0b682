/** A matrix as an image, a pixel a cell: for pictures of a million cells. */

import type { Role } from "../model/sites";
import { makePixelPainter, type Theme } from "./colors";
import type { Matrix } from "../model/matrix";

export function matrixImage(matrix: Matrix, role: Role, theme: Theme, peak: number): HTMLCanvasElement {
  const image = document.createElement("canvas");
  [image.width, image.height] = [matrix.columns, matrix.rows];
  const on = image.getContext("2d")!;
  const pixels = on.createImageData(matrix.columns, matrix.rows);
  makePixelPainter(role, theme, peak)(matrix.values, new Uint32Array(pixels.data.buffer));
  on.putImageData(pixels, 0, 0);
  return image;
}

/** Many of one size on one sheet, and where each of them is: one image is made far sooner than hundreds. */
export function spriteSheet(
  matrices: Matrix[],
  role: Role,
  theme: Theme,
  peak: number,
): { image: HTMLCanvasElement; corner: (number: number) => [number, number] } {
  const { rows, columns } = matrices[0]!;
  const across = Math.ceil(Math.sqrt(matrices.length));
  const width = across * columns;
  const image = document.createElement("canvas");
  [image.width, image.height] = [width, Math.ceil(matrices.length / across) * rows];
  const on = image.getContext("2d")!;
  const data = on.createImageData(image.width, image.height);
  const pixels = new Uint32Array(data.data.buffer);
  const color = makePixelPainter(role, theme, peak);
  const corner = (number: number): [number, number] => [
    (number % across) * columns,
    Math.floor(number / across) * rows,
  ];
  matrices.forEach((matrix, number) => {
    const [x, y] = corner(number);
    for (let i = 0; i < rows; i++) {
      const start = (y + i) * width + x;
      color(matrix.values.subarray(i * columns, (i + 1) * columns), pixels.subarray(start, start + columns));
    }
  });
  on.putImageData(data, 0, 0);
  return { image, corner };
}
