/** Export: numbers as CSV or .npy, figures as SVG or PNG. */

import type { Matrix } from "../model/matrix";
import { CanvasPen, type Pen, SvgPen } from "./pen";

/** One line per row, beginning with its name. Non-finite numbers are written as in Python. */
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

/** Rows of strings and numbers. The columns have the same names as in the API. */
export interface Table {
  columns: string[];
  rows: (string | number | null)[][]; // null if unknown
}

/** One line per row, with all digits of the numbers. Unknown values are empty. */
export function tableToCsv({ columns, rows }: Table): string {
  const write = (value: string | number | null) => (value === null ? "" : quote(String(value)));
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
  return String(Number(x.toPrecision(9))); // 9 digits identify every float32
}

/** NumPy's .npy format, version 1.0. */
export function toNpy(matrix: Matrix): Uint8Array<ArrayBuffer> {
  const shape = matrix.columns === 1 ? `(${matrix.rows},)` : `(${matrix.rows}, ${matrix.columns})`;
  const header = `{'descr': '<f4', 'fortran_order': False, 'shape': ${shape}, }`;
  const offset = 64 * Math.ceil((10 + header.length + 1) / 64);
  const bytes = new Uint8Array(offset + 4 * matrix.values.length);
  bytes.set([0x93, ...new TextEncoder().encode("NUMPY"), 1, 0]);
  new DataView(bytes.buffer).setUint16(8, offset - 10, true);
  bytes.set(new TextEncoder().encode(`${header.padEnd(offset - 11)}\n`), 10);
  bytes.set(new Uint8Array(matrix.values.slice().buffer), offset);
  return bytes;
}

export interface Figure {
  width: number;
  height: number;
  paint: (pen: Pen) => void;
}

/** `font` is a data URL of the page's font, to embed it. */
export function toSvg(figure: Figure, font?: string): string {
  const pen = new SvgPen();
  figure.paint(pen);
  return pen.finish(figure.width, figure.height, font);
}

/** At two image pixels per CSS pixel, or fewer if the image would be too large. */
export async function toPng(figure: Figure): Promise<Blob> {
  const canvas = document.createElement("canvas");
  const scale = Math.min(2, 16_000 / Math.max(figure.width, figure.height));
  canvas.width = Math.ceil(figure.width * scale);
  canvas.height = Math.ceil(figure.height * scale);
  const context = canvas.getContext("2d")!;
  context.scale(scale, scale);
  figure.paint(new CanvasPen(context));
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the figure is too large")))),
  );
}

export function download(name: string, content: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
