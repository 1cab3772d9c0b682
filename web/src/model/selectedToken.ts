/**
 * The position of the selected token after the text was changed by hand: where it was, if nothing up to it changed, or
 * counted from the end, if nothing from it on changed. Otherwise −1: the last token.
 */
export function followToken(before: readonly number[], after: readonly number[], row: number): number {
  const isSame = (from: number, end: number, shift: number) =>
    before.slice(from, end).every((id, i) => after[from + shift + i] === id);
  if (isSame(0, row + 1, 0)) return row;
  const shift = after.length - before.length;
  return row + shift >= 0 && isSame(row, before.length, shift) ? row + shift : -1;
}
