/**
 * Skip-gram with a full softmax, trained on all pairs at once.
 * Shapes: V words, D features per vector; tables and gradients are flat, row by row.
 */

import { uniform } from "./random";

const LEARNING_RATE = 0.05;
const [BETA1, BETA2, EPSILON] = [0.9, 0.999, 1e-8]; // Adam

/** The words at most `window` positions before or after the one at `place`. */
export function neighborsAt(words: readonly string[], place: number, window: number): string[] {
  return words.filter((_, i) => i !== place && Math.abs(i - place) <= window);
}

/** The pairs (center, neighbor) of a sentence. */
export function pairsOf(words: readonly string[], window: number): [string, string][] {
  return words.flatMap((center, i) =>
    neighborsAt(words, i, window).map((neighbor): [string, string] => [center, neighbor]),
  );
}

/** The distinct words of the sentences, in alphabetical order. */
export function vocabularyOf(sentences: readonly (readonly string[])[]): string[] {
  return [...new Set(sentences.flat())].sort((a, b) => (a < b ? -1 : 1));
}

/** How often each word (column) is a neighbor of each center (row). Pairs with unknown words are left out. */
export function countPairs(
  sentences: readonly (readonly string[])[],
  vocabulary: readonly string[],
  window: number,
): Float64Array {
  const index = new Map(vocabulary.map((word, i) => [word, i]));
  const counts = new Float64Array(vocabulary.length ** 2);
  for (const [center, neighbor] of sentences.flatMap((words) => pairsOf(words, window))) {
    const [i, j] = [index.get(center), index.get(neighbor)];
    if (i !== undefined && j !== undefined) counts[i * vocabulary.length + j]!++;
  }
  return counts;
}

export interface SkipGram {
  width: number; // D
  inputs: Float64Array; // V × D: the vectors of centers, which are kept
  outputs: Float64Array; // V × D: the vectors of neighbors
}

export function makeSkipGram(words: number, width: number, seed: number): SkipGram {
  const numbers = Float64Array.from(uniform(2 * words * width, 1 / Math.sqrt(width), seed));
  return { width, inputs: numbers.slice(0, words * width), outputs: numbers.slice(words * width) };
}

export interface Gradient {
  loss: number; // mean cross-entropy over all pairs, in nats
  inputs: Float64Array;
  outputs: Float64Array;
}

/** The loss on counted pairs and its gradient. */
export function lossAndGradient({ width, inputs, outputs }: SkipGram, counts: Float64Array): Gradient {
  const words = inputs.length / width;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const gradient = {
    loss: 0,
    inputs: new Float64Array(inputs.length),
    outputs: new Float64Array(inputs.length),
  };
  const scores = new Float64Array(words);
  for (let center = 0; center < words; center++) {
    const row = counts.subarray(center * words, (center + 1) * words);
    const pairs = row.reduce((sum, count) => sum + count, 0);
    if (pairs === 0) continue;
    const at = center * width;
    for (let word = 0; word < words; word++) {
      let score = 0;
      for (let d = 0; d < width; d++) score += inputs[at + d]! * outputs[word * width + d]!;
      scores[word] = score;
    }
    const normalizer = logSumExp(scores);
    for (let word = 0; word < words; word++) {
      const logProbability = scores[word]! - normalizer;
      gradient.loss -= (row[word]! * logProbability) / total;
      const slope = (pairs * Math.exp(logProbability) - row[word]!) / total; // of the loss with respect to the score
      for (let d = 0; d < width; d++) {
        gradient.inputs[at + d]! += slope * outputs[word * width + d]!;
        gradient.outputs[word * width + d]! += slope * inputs[at + d]!;
      }
    }
  }
  return gradient;
}

function logSumExp(scores: Float64Array): number {
  const top = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  return top + Math.log(scores.reduce((sum, score) => sum + Math.exp(score - top), 0));
}

/** Trains in place with Adam, each step on all pairs. */
export function train(model: SkipGram, counts: Float64Array, steps: number): void {
  const tables = ["inputs", "outputs"] as const;
  const moments = tables.map((name) => ({
    name,
    mean: new Float64Array(model[name].length),
    square: new Float64Array(model[name].length),
  }));
  for (let step = 1; step <= steps; step++) {
    const gradient = lossAndGradient(model, counts);
    for (const { name, mean, square } of moments)
      for (let i = 0; i < mean.length; i++) {
        const slope = gradient[name][i]!;
        mean[i] = BETA1 * mean[i]! + (1 - BETA1) * slope;
        square[i] = BETA2 * square[i]! + (1 - BETA2) * slope * slope;
        const deviation = Math.sqrt(square[i]! / (1 - BETA2 ** step)) + EPSILON;
        model[name][i]! -= (LEARNING_RATE * mean[i]!) / (1 - BETA1 ** step) / deviation;
      }
  }
}

/** The cosine between the vectors of two words, given by their rows. */
export function cosine({ width, inputs }: SkipGram, a: number, b: number): number {
  let [product, squareA, squareB] = [0, 0, 0];
  for (let d = 0; d < width; d++) {
    const [x, y] = [inputs[a * width + d]!, inputs[b * width + d]!];
    product += x * y;
    squareA += x * x;
    squareB += y * y;
  }
  return product / Math.sqrt(squareA * squareB);
}
