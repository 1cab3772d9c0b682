/** Divides the height of the screen between the flow and the matrix of a step, so that both fit on it. */

export interface ScreenRows {
  flow: number; // height of a row of the flow, in pixels
  matrix: number; // height of a row of the matrix
}

const FULL: ScreenRows = { flow: 26, matrix: 25 };
const SMALLEST: ScreenRows = { flow: 11, matrix: 15 };
export const MOST_TOKENS = 16; // of longer texts, as many rows are shown and the rest is scrolled to
const REST = 267; // pixels of everything around the rows
const FLOW_SHARE = 0.44;

/** The heights of the rows of a text; full height if the screen is unlimited (`height` undefined). */
export function divideScreen(height: number | undefined, tokens: number): ScreenRows {
  if (height === undefined) return FULL;
  const perToken = (height - REST) / Math.max(1, Math.min(tokens, MOST_TOKENS));
  const clamp = (value: number, name: keyof ScreenRows) =>
    Math.max(SMALLEST[name], Math.min(FULL[name], value));
  const flow = clamp(perToken * FLOW_SHARE, "flow");
  return { flow, matrix: Math.floor(clamp(perToken - flow, "matrix")) };
}
