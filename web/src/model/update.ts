/** The change in one weight as a sum that can be checked by eye. */

const [LEAST_DIGITS, MOST_DIGITS] = [6, 10]; // decimals; float32 has no more for most weights
const MOST_PART_DIGITS = 12;

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

/** The decimals with which the largest part of a sum shows three digits. */
export function partDigits(parts: readonly number[]): number {
  const largest = Math.max(...parts.map(Math.abs).filter(Number.isFinite), 0);
  return largest === 0 ? 2 : Math.max(2, Math.min(MOST_PART_DIGITS, 2 - Math.floor(Math.log10(largest))));
}

/** What the explanation of a term names, as shown. */
export interface UpdateNumbers {
  rate: string; // the learning rate
  decay: string;
  epsilon: string;
  before: string; // the old value
}

/** Which way a gradient, or a part of one, pushes its number: a step goes against it. */
export function pushOf(gradient: number): "↑" | "↓" | "" {
  return gradient < 0 ? "↑" : gradient > 0 ? "↓" : "";
}

export type Sign = -1 | 0 | 1;

/** Which way a weight goes, and why. */
export interface Direction {
  change: Sign;
  gradient: Sign;
  decay: Sign; // which way weight decay pulls it; 0 if that makes no difference to speak of
  cause: string | null; // the term that decides; null if it stays the same
}

const LEAST_DECAY = 0.05; // of the change, to be worth mentioning

export function findDirection(
  gradient: number,
  terms: readonly { name: string; value: number }[],
  change: number,
  cause: string | null,
): Direction {
  const sign = (x: number) => (Math.sign(x) || 0) as Sign;
  const decay = terms.find(({ name }) => name === "weight_decay")?.value ?? 0;
  const matters = Math.abs(decay) >= LEAST_DECAY * Math.abs(change);
  return { change: sign(change), gradient: sign(gradient), decay: matters ? sign(decay) : 0, cause };
}
