/** The change of one weight as a sum that can be checked by eye. */

const [LEAST_DIGITS, MOST_DIGITS] = [6, 10]; // decimals; float32 has no more for most weights

/** Decimals with which every term but rounding, and the change itself, shows at least two digits. */
export function sumDigits(terms: readonly { name: string; value: number }[], change: number): number {
  const sizes = [...terms.filter(({ name }) => name !== "rounding").map(({ value }) => value), change]
    .map(Math.abs)
    .filter((size) => size > 0 && Number.isFinite(size));
  const needed = 1 - Math.floor(Math.log10(Math.min(1, ...sizes)));
  return Math.max(LEAST_DIGITS, Math.min(MOST_DIGITS, needed));
}

/** The terms, rounded so that they lead from the rounded old value exactly to the rounded new one: each is the
 * difference of two rounded running totals. */
export function roundTerms(before: number, terms: readonly number[], digits: number): number[] {
  const round = (x: number) => Number(x.toFixed(digits));
  let [total, rounded] = [before, round(before)];
  return terms.map((term) => {
    const last = rounded;
    rounded = round((total += term));
    return round(rounded - last);
  });
}

/** Which way a weight goes, and whether that is against its gradient. */
export interface Direction {
  change: -1 | 0 | 1;
  gradient: -1 | 0 | 1;
  cause: string | null; // the largest term that goes this way, if plain gradient descent does not
}

export function findDirection(
  gradient: number,
  terms: readonly { name: string; value: number }[],
  change: number,
): Direction {
  const sign = (x: number) => (Math.sign(x) || 0) as -1 | 0 | 1;
  const [up, slope] = [sign(change), sign(gradient)];
  if (up === 0 || up === -slope) return { change: up, gradient: slope, cause: null };
  const along = terms.filter(({ value }) => sign(value) === up);
  const cause = along.reduce<(typeof along)[number] | null>(
    (most, term) => (most === null || Math.abs(term.value) > Math.abs(most.value) ? term : most),
    null,
  );
  return { change: up, gradient: slope, cause: cause?.name ?? null };
}
