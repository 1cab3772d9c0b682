/** Matrices as images with one pixel per cell: fast enough for a million cells. */

import type { Role } from "../model/sites";
import { makePixelPainter, type Theme } from "./colors";
import type { Matrix } from "../model/matrix";

export function matrixImage(matrix: Matrix, role: Role, theme: Theme, peak: number): HTMLCanvasElement {
  const image = document.createElement("canvas");
  [image.width, image.height] = [matrix.columns, matrix.rows];
  const context = image.getContext("2d")!;
  const pixels = context.createImageData(matrix.columns, matrix.rows);
  makePixelPainter(role, theme, peak)(matrix.values, new Uint32Array(pixels.data.buffer));
  context.putImageData(pixels, 0, 0);
  return image;
}

/**
 * Many attention patterns of the same size in one image, and their positions: much faster than one image each.
 * If they are causal, the future is transparent.
 */
export function spriteSheet(
  matrices: Matrix[],
  role: Role,
  theme: Theme,
  peak: number,
  causal = false,
): { image: HTMLCanvasElement; position: (number: number) => [number, number] } {
  const { rows, columns } = matrices[0]!;
  const imagesPerRow = Math.ceil(Math.sqrt(matrices.length));
  const width = imagesPerRow * columns;
  const image = document.createElement("canvas");
  [image.width, image.height] = [width, Math.ceil(matrices.length / imagesPerRow) * rows];
  const context = image.getContext("2d")!;
  const data = context.createImageData(image.width, image.height);
  const pixels = new Uint32Array(data.data.buffer);
  const paint = makePixelPainter(role, theme, peak);
  const position = (number: number): [number, number] => [
    (number % imagesPerRow) * columns,
    Math.floor(number / imagesPerRow) * rows,
  ];
  matrices.forEach((matrix, number) => {
    const [x, y] = position(number);
    for (let i = 0; i < rows; i++) {
      const start = (y + i) * width + x;
      const count = causal ? Math.min(columns, i + 1) : columns;
      paint(matrix.values.subarray(i * columns, i * columns + count), pixels.subarray(start, start + count));
    }
  });
  context.putImageData(data, 0, 0);
  return { image, position };
}
