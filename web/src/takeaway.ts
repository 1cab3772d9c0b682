/** What one can take away: numbers as CSV or .npy, pictures as SVG or PNG. */

import { inkOn, makeScale, PALETTES, type Role, type Theme } from "./colours";
import type { Matrix } from "./matrix";
import { short } from "./numbers";
import { CanvasPen, type Pen, SvgPen } from "./pen";

/** A line for each row, its name first. What is not finite is written as Python writes it. */
export function toCsv(
  matrix: Matrix,
  rowName: (row: number) => string,
  columnName: (column: number) => string,
): string {
  const columns = Array.from({ length: matrix.columns }, (_, i) => columnName(matrix.firstColumn + i));
  const lines = [["", ...columns].map(quote).join(",")];
  for (let row = matrix.firstRow; row < matrix.firstRow + matrix.rows; row++) {
    lines.push([quote(rowName(row)), ...Array.from(matrix.row(row), writeNumber)].join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function writeNumber(x: number): string {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  return String(Number(x.toPrecision(9))); // as many digits as tell every float32 from its neighbours
}

/** NumPy's own format, version 1.0: np.load opens it. */
export function toNpy(matrix: Matrix): Uint8Array<ArrayBuffer> {
  const shape = matrix.columns === 1 ? `(${matrix.rows},)` : `(${matrix.rows}, ${matrix.columns})`;
  const head = `{'descr': '<f4', 'fortran_order': False, 'shape': ${shape}, }`;
  const room = 64 * Math.ceil((10 + head.length + 1) / 64);
  const bytes = new Uint8Array(room + 4 * matrix.values.length);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0]);
  new DataView(bytes.buffer).setUint16(8, room - 10, true);
  bytes.set(new TextEncoder().encode(`${head.padEnd(room - 11)}\n`), 10);
  bytes.set(new Uint8Array(matrix.values.slice().buffer), room);
  return bytes;
}

export interface Picture {
  width: number;
  height: number;
  paint: (pen: Pen) => void;
}

/** A matrix with the names of its rows and columns, and its numbers where there is room. */
export function matrixPicture(
  matrix: Matrix,
  names: { row: (row: number) => string; column: (column: number) => string; title: string },
  role: Role,
  theme: Theme,
  peak = matrix.strength,
): Picture {
  const large = matrix.rows <= 64 && matrix.columns <= 64;
  const [cell, tall] = large ? [46, 24] : [Math.max(1, 900 / matrix.columns), Math.max(1, 900 / matrix.rows)];
  const [side, head] = large ? [110, 60] : [10, 34];
  const ink = theme === "light" ? "#1d2026" : "#eceae4";
  return {
    width: side + cell * matrix.columns + 12,
    height: head + tall * matrix.rows + 12,
    paint(pen) {
      const scale = makeScale(role, theme);
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 18, names.title, { size: 14, fill: ink, weight: 650 });
      for (let i = 0; i < matrix.rows; i++) {
        const row = matrix.firstRow + i;
        const y = head + i * tall;
        if (large) pen.text(side - 8, y + tall / 2, names.row(row), { size: 12, fill: ink, anchor: "end" });
        for (let j = 0; j < matrix.columns; j++) {
          const column = matrix.firstColumn + j;
          const x = side + j * cell;
          if (large && i === 0) {
            pen.text(x + cell / 2, head - 12, names.column(column), {
              size: 11,
              fill: ink,
              anchor: "middle",
            });
          }
          const value = matrix.at(row, column);
          const colour = scale(value, peak);
          pen.rect(x, y, large ? cell - 2 : cell + 0.3, large ? tall - 2 : tall + 0.3, colour, large ? 3 : 0);
          if (!large) continue;
          const letters = inkOn(colour) === "light" ? "#ffffff" : "#000000";
          const style = {
            size: 11,
            fill: Number.isFinite(value) ? letters : "#8b909a",
            anchor: "middle",
          } as const;
          pen.text(x + cell / 2 - 1, y + tall / 2 - 1, short(value), style);
        }
      }
    },
  };
}

export function toSvg(picture: Picture): string {
  const pen = new SvgPen();
  picture.paint(pen);
  return pen.finish(picture.width, picture.height);
}

/** Twice as fine as on screen. */
export async function toPng(picture: Picture): Promise<Blob> {
  const canvas = document.createElement("canvas");
  const fine = Math.min(2, 16_000 / Math.max(picture.width, picture.height));
  canvas.width = Math.ceil(picture.width * fine);
  canvas.height = Math.ceil(picture.height * fine);
  const on = canvas.getContext("2d")!;
  on.scale(fine, fine);
  picture.paint(new CanvasPen(on));
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large")))),
  );
}

/** Hand a file to whoever looks at the page. */
export function download(name: string, content: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
