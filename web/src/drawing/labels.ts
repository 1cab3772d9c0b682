/** The names along a matrix: which of them fit, and how. */

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

/** The width of a text where it cannot be measured, as in an SVG file. */
export function estimateWidth(text: string, fontSize: number): number {
  return CHARACTER_WIDTH * fontSize * [...text].length;
}

/**
 * The indices to name so that names are at least `spacing` pixels apart: evenly spaced ones, and those to
 * `keep` where they are visible, which take precedence.
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
