/** The sizes of a grid of numbers, and which of its cells are in view. */

import type { Span } from "../model/sites";
import { fitRows, MOST_TOKENS } from "./screen";

const [CELL_WIDTH, MIN_CELL_WIDTH] = [50, 32]; // pixels
export const USUAL_CHARACTERS = 6; // of the longest numbers, such as −12.34
const CHARACTER = 0.6; // width of a character, relative to the size of its font
const FONT_SIZE = 11.5; // pixels
export const [HEADER_HEIGHT, SIDE_WIDTH] = [24, 80]; // of the names, in pixels
const GAP = 2.5; // pixels between two cells
const HIDDEN_CELLS = 18; // height of the line about them, in pixels

export interface GridSizes {
  cellWidth: number;
  rowHeight: number;
  isCut: boolean; // whether some cells are out of view
  height: number; // of the grid, with whole rows and without the line about the hidden cells
}

/** Cells are narrower if that makes all columns fit, and rows as tall as the height allows, if it is limited. */
export function fitGrid(
  [rows, columns]: [number, number],
  width: number,
  height: number | undefined,
  usualRowHeight: number,
  scrollbarHeight: number,
  characters = USUAL_CHARACTERS,
): GridSizes {
  const fitting = Math.floor((width - SIDE_WIDTH) / columns);
  const longer = Math.max(1, characters / USUAL_CHARACTERS);
  const usual = Math.max(CELL_WIDTH, Math.ceil(GAP + characters * CHARACTER * FONT_SIZE));
  const cellWidth = fitting >= MIN_CELL_WIDTH * longer && fitting < usual ? fitting : usual;
  const scrollbar = SIDE_WIDTH + columns * cellWidth > width ? scrollbarHeight : null;
  const fit = (around: number) => {
    const room = (height ?? Infinity) - around;
    const rowHeight = height === undefined ? usualRowHeight : fitRows(room, rows);
    return { rowHeight, count: Math.max(1, Math.min(rows, MOST_TOKENS, Math.floor(room / rowHeight))) };
  };
  const around = HEADER_HEIGHT + (scrollbar ?? 0);
  let { rowHeight, count } = fit(around);
  const isCut = scrollbar !== null || count < rows;
  if (isCut) ({ rowHeight, count } = fit(around + HIDDEN_CELLS));
  return { cellWidth, rowHeight, isCut, height: around + count * rowHeight };
}

/** The size of the font with which numbers of this many characters fit into a cell. */
export function fontSize({ cellWidth, rowHeight }: GridSizes, characters = USUAL_CHARACTERS): number {
  return Math.min(FONT_SIZE, 0.68 * rowHeight, (cellWidth - GAP) / (CHARACTER * characters));
}

const TOLERANCE = Math.ceil(GAP);

/** The half-open range of rows or columns that are fully in view. */
export function wholeSpan(offset: number, room: number, size: number, count: number): Span {
  const first = Math.max(0, Math.ceil((offset - TOLERANCE) / size));
  return [first, Math.max(first, Math.min(count, Math.floor((offset + room + TOLERANCE) / size)))];
}

/** The half-open range of rows or columns that are at least partly in view. */
export function partialSpan(offset: number, room: number, size: number, count: number): Span {
  const first = Math.max(0, Math.min(count - 1, Math.floor(offset / size)));
  return [first, Math.min(count, Math.ceil((offset + room) / size) + 1)];
}
