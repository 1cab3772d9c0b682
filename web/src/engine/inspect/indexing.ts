/** Positions, rows and columns by number. */

import { UserError } from "../userError";

/** A valid index below `count`; a negative one counts from the end. */
export function checkIndex(index: number, count: number, what: string): number {
  if (!(index >= -count && index < count)) {
    const message = `${what} ${index} does not exist: there are ${what}s 0 to ${count - 1}`;
    throw new UserError(message, "no_such_number", { what, number: index, last: count - 1 });
  }
  return index < 0 ? index + count : index;
}

export function checkIndices(indices: readonly number[], count: number, what: string): number[] {
  return indices.map((index) => checkIndex(index, count, what));
}
