/** The running example of "One attention head, by matrices": eight words of 32 features through one head. */

import INPUTS from "../../../src/clearhead/lectures/inputs.json";
import { bareWords } from "./countedNgram";
import { seedOf, uniform } from "./random";
import { type Rows, runTinyHead, type TinySteps } from "./tinyHead";

export const SENTENCE = INPUTS["002.5"].sentence;
export const MAX_WORDS = 8; // the context length
export const FEATURES = 32; // of a word; also of a query and a key
export const MAX_VALUE_FEATURES = 10;

const PROJECTION_SIZE = 0.3; // the largest number in a projection matrix
const SEEDS = { W_Q: 1, W_K: 2, W_V: 3 };

function reshape(numbers: number[], columns: number): Rows {
  return Array.from({ length: numbers.length / columns }, (_, i) =>
    numbers.slice(i * columns, (i + 1) * columns),
  );
}

const makeProjection = (columns: number, seed: number) =>
  reshape(uniform(FEATURES * columns, PROJECTION_SIZE, seed), columns);

/** A word's features: random numbers, and always the same ones for the same word. */
export function featuresOf(word: string): number[] {
  return uniform(FEATURES, 1, seedOf(word));
}

export interface Embedded {
  words: string[];
  vocabulary: string[]; // each word once
  table: Rows; // one row per word of the vocabulary
  oneHot: Rows; // one row per word of the sentence, with a 1 in the column of its row in the table
}

export function embedWords(sentence: string): Embedded {
  const words = bareWords(sentence).slice(0, MAX_WORDS);
  const vocabulary = [...new Set(words)];
  const oneHot = words.map((word) => vocabulary.map((each) => (each === word ? 1 : 0)));
  return { words, vocabulary, table: vocabulary.map(featuresOf), oneHot };
}

export interface EightWords {
  sentence: string;
  causal: boolean;
  divided: boolean; // by √d_k
  d_v: number;
}

/** The head on these words. The value matrix consists of the first d_v columns of a wider one. */
export function runEightWords({ sentence, causal, divided, d_v }: EightWords): TinySteps {
  return runTinyHead({
    x: embedWords(sentence).words.map(featuresOf),
    W_Q: makeProjection(FEATURES, SEEDS.W_Q),
    W_K: makeProjection(FEATURES, SEEDS.W_K),
    W_V: makeProjection(MAX_VALUE_FEATURES, SEEDS.W_V).map((row) => row.slice(0, d_v)),
    causal,
    divided,
  });
}
