/** The columns of the logit lens: all of them, or as many whole ones as fit side by side. */

const [NARROW_WIDTH, LEAST_WIDTH, MOST_WIDTH] = [54, 60, 86]; // pixels; narrow if that makes all columns fit

export interface LensColumns {
  width: number; // of a column, in pixels
  shown: number; // how many are visible at once
}

export function fitLensColumns(room: number, count: number): LensColumns {
  const shown = count * NARROW_WIDTH <= room ? count : Math.max(1, Math.floor(room / LEAST_WIDTH));
  return { width: Math.max(NARROW_WIDTH, Math.min(MOST_WIDTH, Math.floor(room / shown))), shown };
}
