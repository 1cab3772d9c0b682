/** What one can take away: numbers as CSV or .npy, pictures as SVG or PNG. */

import type { Matrix } from "../model/matrix";
import { CanvasPen, type Pen, SvgPen } from "./pen";

/** A line for each row, its name first. What is not finite is written as Python writes it. */
export function toCsv(
  matrix: Matrix,
  rowName: (row: number) => string,
  columnName: (column: number) => string,
): string {
  const columns = Array.from({ length: matrix.columns }, (_, i) => columnName(matrix.firstColumn + i));
  const rows = Array.from({ length: matrix.rows }, (_, i) => {
    const row = matrix.firstRow + i;
    return [quote(rowName(row)), ...Array.from(matrix.row(row), writeNumber)];
  });
  return joinLines([["", ...columns].map(quote), ...rows]);
}

/** Numbers with words between them, which no matrix contains. Its columns are named as on the wire. */
export interface Table {
  columns: string[];
  rows: (string | number | null)[][]; // null is not known
}

/** A line for each row, its numbers with all their digits; what is not known is left empty. */
export function tableToCsv({ columns, rows }: Table): string {
  const write = (each: string | number | null) => (each === null ? "" : quote(String(each)));
  return joinLines([columns, ...rows].map((row) => row.map(write)));
}

function joinLines(lines: string[][]): string {
  return `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function writeNumber(x: number): string {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  return String(Number(x.toPrecision(9))); // as many digits as tell every float32 from its neighbors
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

export interface Figure {
  width: number;
  height: number;
  paint: (pen: Pen) => void;
}

export function toSvg(picture: Figure): string {
  const pen = new SvgPen();
  picture.paint(pen);
  return pen.finish(picture.width, picture.height);
}

/** Twice as fine as on screen. */
export async function toPng(picture: Figure): Promise<Blob> {
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
