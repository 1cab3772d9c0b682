/** Divides the height of the screen between the flow and the matrix of a step, so that both fit on it. */

export interface ScreenRows {
  flow: number; // height of a row of the flow, in pixels
  matrix: number; // height of a row of the matrix, as far as it is known before the page is laid out
}

const FULL = { flow: 26, matrix: 25 };
const SMALLEST = { flow: 10, matrix: 15 };
export const MOST_TOKENS = 16; // longer texts show this many rows; the others are reached by scrolling
const REST = 279; // height of everything around the rows, in pixels
const FLOW_SHARE = 0.44;

/** The height of each row of a text; full height if the screen is unlimited (`height` undefined). */
export function divideScreen(height: number | undefined, tokens: number): ScreenRows {
  if (height === undefined) return { ...FULL };
  const rows = Math.max(1, Math.min(tokens, MOST_TOKENS));
  const perToken = (height - REST) / rows;
  const flow = clamp(Math.min(perToken * FLOW_SHARE, perToken - SMALLEST.matrix), "flow");
  return { flow, matrix: fitRows((perToken - flow) * rows, tokens) };
}

/** The height of a row of a matrix that has this many pixels for its rows. */
export function fitRows(height: number, rows: number): number {
  return Math.floor(clamp(height / Math.max(1, Math.min(rows, MOST_TOKENS)), "matrix"));
}

function clamp(value: number, name: keyof typeof FULL): number {
  return Math.max(SMALLEST[name], Math.min(FULL[name], value));
}
