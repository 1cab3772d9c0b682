/** From logits to the probabilities that a word is drawn with, as the library does it. */

export interface Sampling {
  temperature: number;
  topK: number; // 0 keeps all
  topP: number; // 1 keeps all
  minP: number; // 0 keeps all
}

export const DEFAULT_SAMPLING: Sampling = { temperature: 1, topK: 0, topP: 1, minP: 0 };

/** A probability for each word; what a rule cuts off has none. At temperature 0 the likeliest has it all. */
export function tokenProbabilities(
  logits: Float32Array,
  { temperature, topK, topP, minP }: Sampling,
): Float64Array {
  const n = logits.length;
  let top = -Infinity;
  for (const logit of logits) if (logit > top) top = logit;
  if (temperature === 0) {
    const chosen = new Float64Array(n);
    chosen[logits.indexOf(top)] = 1;
    return chosen;
  }
  const probabilities = new Float64Array(n);
  for (let i = 0; i < n; i++) probabilities[i] = Math.exp((logits[i]! - top) / temperature);
  normalize(probabilities);
  if (topK === 0 && topP === 1 && minP === 0) return probabilities;
  // Likeliest first; of equals the one with the lower number.
  const order = Array.from(probabilities.keys()).sort(
    (a, b) => probabilities[b]! - probabilities[a]! || a - b,
  );
  let kept = n;
  if (topK > 0 && topK < n) {
    const least = probabilities[order[topK - 1]!]!; // what is as likely as the last one stays too
    kept = order.findIndex((i) => probabilities[i]! < least);
    if (kept < 0) kept = n;
  }
  if (topP < 1) {
    const within = order.slice(0, kept);
    const total = within.reduce((sum, i) => sum + probabilities[i]!, 0);
    let before = 0;
    let count = 0;
    for (const i of within) {
      if (count > 0 && before / total >= topP) break;
      before += probabilities[i]!;
      count++;
    }
    kept = count;
  }
  const least = minP * probabilities[order[0]!]!;
  order.forEach((i, place) => {
    if (place >= kept || probabilities[i]! < least) probabilities[i] = 0;
  });
  return normalize(probabilities);
}

/** Of each word the first rule that cuts it off; none where it stays. What each rule leaves is found once. */
export function cutoffRule(logits: Float32Array, sampling: Sampling): (id: number) => keyof Sampling | null {
  const { temperature, topK, topP, minP } = sampling;
  const rules: [keyof Sampling, Sampling][] = [
    ["temperature", { ...DEFAULT_SAMPLING, temperature }],
    ["topK", { ...DEFAULT_SAMPLING, temperature, topK }],
    ["topP", { ...DEFAULT_SAMPLING, temperature, topK, topP }],
    ["minP", { temperature, topK, topP, minP }],
  ];
  const left: Float64Array[] = [];
  return (id) =>
    rules.find(([, rule], i) => (left[i] ??= tokenProbabilities(logits, rule))[id] === 0)?.[0] ?? null;
}

/** Drawn by a number between 0 and 1. */
export function sampleToken(probabilities: Float64Array, random: number): number {
  let rest = random;
  let last = 0;
  for (let i = 0; i < probabilities.length; i++) {
    if (probabilities[i]! === 0) continue;
    last = i;
    rest -= probabilities[i]!;
    if (rest < 0) break;
  }
  return last;
}

function normalize(probabilities: Float64Array): Float64Array {
  let total = 0;
  for (const probability of probabilities) total += probability;
  for (let i = 0; i < probabilities.length; i++) probabilities[i]! /= total;
  return probabilities;
}
