/** Which names fit beside a matrix, and how. */

/** Shortens a text with an ellipsis until it is at most `maxWidth` wide. */
export function abbreviate(text: string, maxWidth: number, measure: (text: string) => number): string {
  if (measure(text) <= maxWidth) return text;
  const characters = [...text]; // whole code points
  let [fits, tooLong] = [0, characters.length];
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1;
    if (measure(`${characters.slice(0, middle).join("")}…`) <= maxWidth) fits = middle;
    else tooLong = middle;
  }
  return fits === 0 ? "…" : `${characters.slice(0, fits).join("")}…`;
}

const CHARACTER_WIDTH = 0.56; // average width of a character, relative to the font size

/** The approximate width of a text that cannot be measured, as in an SVG file. */
export function estimateWidth(text: string, fontSize: number): number {
  return CHARACTER_WIDTH * fontSize * [...text].length;
}

/**
 * The indices to name so that names are at least `spacing` pixels apart: evenly spaced ones, and the visible
 * ones of `keep`, which take precedence.
 */
export function labeledIndices(
  first: number,
  count: number,
  size: number, // pixels per cell
  spacing: number,
  keep: number[] = [],
): number[] {
  const step = Math.max(1, Math.ceil(spacing / size - 1e-9));
  const isVisible = (index: number) => index >= Math.floor(first) && index < first + count;
  const kept: number[] = [];
  for (const index of keep) {
    const isFree = kept.every((other) => Math.abs(other - index) * size >= spacing - 1e-9);
    if (isVisible(index) && isFree) kept.push(index);
  }
  const start = Math.ceil(first / step) * step;
  const even = Array.from(
    { length: Math.max(0, Math.ceil((first + count - start) / step)) },
    (_, i) => start + i * step,
  ).filter((index) => kept.every((other) => Math.abs(other - index) * size >= spacing - 1e-9));
  return [...kept, ...even].toSorted((a, b) => a - b);
}

/** Moves positions on a line until they are at least `gap` apart. They keep their order and, if they fit, stay between
 * `low` and `high`. */
export function spreadOut(positions: number[], gap: number, low: number, high: number): number[] {
  const order = [...positions.keys()].toSorted((a, b) => positions[a]! - positions[b]!);
  const spread = [...positions];
  let next = low;
  for (const i of order) {
    spread[i] = Math.max(positions[i]!, next);
    next = spread[i]! + gap;
  }
  let previous = high;
  for (const i of order.toReversed()) {
    spread[i] = Math.min(spread[i]!, previous);
    previous = spread[i]! - gap;
  }
  return spread;
}

export interface Point {
  x: number;
  y: number;
}

const ROUNDS = 100; // enough for 64 points in one place

/** Pushes points apart until they are about `gap` apart, within the square from `low` to `high`. */
export function pushApart(points: Point[], gap: number, low: number, high: number): Point[] {
  const pushed = points.map((point) => ({ ...point }));
  const limit = (value: number) => Math.min(high, Math.max(low, value));
  for (let round = 0; round < ROUNDS; round++) {
    let moved = false;
    pushed.forEach((one, i) =>
      pushed.slice(i + 1).forEach((other, k) => {
        const distance = Math.hypot(other.x - one.x, other.y - one.y);
        if (distance >= gap - 0.01) return;
        // Points in the same place leave it in different directions.
        const angle = distance > 0 ? Math.atan2(other.y - one.y, other.x - one.x) : 2.4 * (i + k);
        const [x, y] = [Math.cos(angle), Math.sin(angle)].map((part) => (part * (gap - distance)) / 2);
        Object.assign(one, { x: limit(one.x - x!), y: limit(one.y - y!) });
        Object.assign(other, { x: limit(other.x + x!), y: limit(other.y + y!) });
        moved = true;
      }),
    );
    if (!moved) break;
  }
  return pushed;
}
