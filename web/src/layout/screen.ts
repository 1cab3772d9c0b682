/** Divides the height of the screen between the flow and the matrix of a step, so that both fit on it. */

export interface ScreenRows {
  flow: number; // height of a row of the flow, in pixels
  matrix: number; // height of a row of the matrix
  left: number; // height left for all of its rows, used or not
}

const FULL = { flow: 26, matrix: 25 };
const SMALLEST = { flow: 10, matrix: 15 };
export const MOST_TOKENS = 16; // longer texts show this many rows; the others are reached by scrolling
const REST = 267; // height of everything around the rows, in pixels
const FLOW_SHARE = 0.44;

/** The height of each row of a text; full height if the screen is unlimited (`height` undefined). */
export function divideScreen(height: number | undefined, tokens: number): ScreenRows {
  if (height === undefined) return { ...FULL, left: MOST_TOKENS * FULL.matrix };
  const rows = Math.max(1, Math.min(tokens, MOST_TOKENS));
  const perToken = (height - REST) / rows;
  const clamp = (value: number, name: keyof typeof FULL) =>
    Math.max(SMALLEST[name], Math.min(FULL[name], value));
  const flow = clamp(Math.min(perToken * FLOW_SHARE, perToken - SMALLEST.matrix), "flow");
  const matrix = Math.floor(clamp(perToken - flow, "matrix"));
  return { flow, matrix, left: Math.max(rows * matrix, height - REST - rows * flow) };
}
