/** The error function. */

const LIMIT = 6; // 1 beyond it, to float64 precision
const STEPS = 64; // nodes per unit

/** The error function to about 1e-10, from the exact values and slopes at the two nearest nodes. */
export function erf(x: number): number {
  const size = Math.abs(x);
  if (!(size < LIMIT)) return Math.sign(x);
  const at = size * STEPS;
  const i = Math.floor(at);
  const t = at - i;
  const [start, end] = [VALUES[i]!, VALUES[i + 1]!];
  const [slope, endSlope] = [SLOPES[i]!, SLOPES[i + 1]!];
  const rise = end - start;
  const bend = slope + endSlope - 2 * rise;
  const value = start + t * (slope + t * (3 * rise - 2 * slope - endSlope + t * bend));
  return x < 0 ? -value : value;
}

/** The error function to float64 precision: its Taylor series for small arguments, else the continued fraction of
 * erfc. */
export function exactErf(x: number): number {
  const size = Math.abs(x);
  if (size > LIMIT) return Math.sign(x);
  if (size < 3) {
    let [term, sum] = [x, x];
    for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); n++) {
      term *= (-x * x) / n;
      sum += term / (2 * n + 1);
    }
    return (2 / Math.sqrt(Math.PI)) * sum;
  }
  let fraction = 0;
  for (let n = 60; n > 0; n--) fraction = n / 2 / (size + fraction);
  return Math.sign(x) * (1 - Math.exp(-size * size) / Math.sqrt(Math.PI) / (size + fraction));
}

const VALUES = Float64Array.from({ length: LIMIT * STEPS + 1 }, (_, i) => exactErf(i / STEPS));
const SLOPES = VALUES.map((_, i) => ((2 / Math.sqrt(Math.PI)) * Math.exp(-((i / STEPS) ** 2))) / STEPS);
