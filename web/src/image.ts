/** A matrix as an image, a pixel a cell: for pictures of a million cells. */

import { cellColours, type Role, type Theme } from "./colours";
import type { Matrix } from "./matrix";

export function imageOf(matrix: Matrix, role: Role, theme: Theme, peak: number): HTMLCanvasElement {
  const image = document.createElement("canvas");
  [image.width, image.height] = [matrix.columns, matrix.rows];
  const on = image.getContext("2d")!;
  const pixels = on.createImageData(matrix.columns, matrix.rows);
  cellColours(role, theme, peak)(matrix.values, new Uint32Array(pixels.data.buffer));
  on.putImageData(pixels, 0, 0);
  return image;
}
