/** From logits to sampling probabilities, as in the library. */

export interface Sampling {
  temperature: number;
  topK: number; // 0 for no limit
  topP: number; // 1 for no limit
  minP: number; // 0 for no limit
}

export const DEFAULT_SAMPLING: Sampling = { temperature: 1, topK: 0, topP: 1, minP: 0 };

/** The probability of each token; 0 if it is excluded. Temperature 0 selects the likeliest token. */
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
  // Likeliest first; ties by id.
  const order = Array.from(probabilities.keys()).sort(
    (a, b) => probabilities[b]! - probabilities[a]! || a - b,
  );
  let count = n;
  if (topK > 0 && topK < n) {
    const least = probabilities[order[topK - 1]!]!; // tokens tied with the k-th are kept too
    count = order.findIndex((i) => probabilities[i]! < least);
    if (count < 0) count = n;
  }
  if (topP < 1) {
    const within = order.slice(0, count);
    const total = within.reduce((sum, i) => sum + probabilities[i]!, 0);
    let cumulative = 0;
    count = 0;
    for (const i of within) {
      if (count > 0 && cumulative / total >= topP) break;
      cumulative += probabilities[i]!;
      count++;
    }
  }
  const least = minP * probabilities[order[0]!]!;
  order.forEach((i, rank) => {
    if (rank >= count || probabilities[i]! < least) probabilities[i] = 0;
  });
  return normalize(probabilities);
}

/** Returns a function that finds the first rule to exclude a token, or null. Applies each rule at most once. */
export function cutoffRule(logits: Float32Array, sampling: Sampling): (id: number) => keyof Sampling | null {
  const { temperature, topK, topP, minP } = sampling;
  const rules: [keyof Sampling, Sampling][] = [
    ["temperature", { ...DEFAULT_SAMPLING, temperature }],
    ["topK", { ...DEFAULT_SAMPLING, temperature, topK }],
    ["topP", { ...DEFAULT_SAMPLING, temperature, topK, topP }],
    ["minP", { temperature, topK, topP, minP }],
  ];
  const distributions: Float64Array[] = [];
  return (id) =>
    rules.find(([, rule], i) => (distributions[i] ??= tokenProbabilities(logits, rule))[id] === 0)?.[0] ??
    null;
}

/** Samples a token with a uniform random number between 0 and 1. */
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
