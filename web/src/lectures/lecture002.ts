/** Lecture 002, "One attention head, by matrices". */

import INPUTS from "../../../src/clearhead/lectures/inputs.json";
import { bareWords } from "../model/countedNgram";
import { nextWordLoss } from "../model/crossEntropy";
import {
  type EightWords,
  embedWords,
  FEATURES,
  MAX_WORDS,
  runEightWords,
  SENTENCE,
} from "../model/eightWords";
import { effectsOf } from "../model/leaveOneOut";
import { fiveProducts } from "../model/loopsAndMatrices";
import { type Kind, relate, RELATIONSHIPS } from "../model/relationshipHead";
import { neighborsAt, pairsOf } from "../model/skipGram";
import { firstOutOfReach } from "../model/slidingWindow";
import { matmul, type Rows, softmax } from "../model/tinyHead";
import type { SweepSettings } from "../model/widthSweep";
import type { Lecture, Question, Stop } from "./types";

const number = (answer: number): Question => ({ kind: "number", answer });

const FOX = INPUTS["002.2"].sentence;
const PETS = INPUTS["002.2"].text.join("\n");

/** How many different words are neighbors of both cat and dog in two sentences. */
function sharedNeighbors(): number {
  const [cat, dog] = ["cat", "dog"].map((word, line) => {
    const words = bareWords(PETS.split("\n")[line]!);
    return neighborsAt(words, words.indexOf(word), 2);
  });
  return new Set(cat!.filter((word) => dog!.includes(word))).size;
}

export const TWO_QUESTIONS: Stop<SweepSettings> = {
  id: "002.1",
  inputs: INPUTS["002.1"],
  question: number(sharedNeighbors()),
  link: { live: true, target: () => ({ view: "labs", lab: "neighbors", settings: {} }) },
};

interface SkipGramInputs {
  sentence: string; // whose pairs are listed
  window: number;
  text: string; // to train on, one sentence per line
  steps: number;
  word: string; // whose neighbors are listed
}

export const SKIP_GRAM: Stop<SkipGramInputs> = {
  id: "002.2",
  inputs: {
    sentence: FOX,
    window: INPUTS["002.2"].window,
    text: PETS,
    steps: INPUTS["002.2"].steps,
    word: INPUTS["002.2"].word,
  },
  question: number(pairsOf(bareWords(FOX), 3).length),
  link: { target: () => ({ view: "words" }) },
};

const ENDINGS = INPUTS["002.3"].text.join("\n");
export const DAMIAN = INPUTS["002.3"].prompt;
export const PROMPTS = [DAMIAN, SENTENCE];
const SUSPECTS = ["secret", "girl", "his", "belongings"]; // the options of the question

/** The index of the suspect without which "her" loses most. */
function decidingWord(): number {
  const past = bareWords(DAMIAN);
  const effects = effectsOf(ENDINGS, past, "her");
  const suspected = SUSPECTS.map((word) => effects[past.indexOf(word)]!);
  return suspected.indexOf(Math.max(...suspected));
}

export const MAIN_TASK: Stop<{ text: string; prompt: string; left: number[]; read: number }> = {
  id: "002.3",
  inputs: { text: ENDINGS, prompt: DAMIAN, left: [], read: bareWords(DAMIAN).length },
  question: { kind: "choice", answer: decidingWord() },
  link: { live: true, target: ({ prompt }) => ({ view: "why", text: prompt }) },
};

export const SLIDING_WINDOW: Stop<{ text: string; length: number; generated: number }> = {
  id: "002.4",
  inputs: INPUTS["002.4"],
  question: number(firstOutOfReach(5, MAX_WORDS)),
  link: { live: true, target: () => ({ view: "labs", lab: "window", settings: {} }) },
};

/** The head of stops 5 to 8, which share it, and what is selected in it. */
export interface HeadInputs extends EightWords {
  row: number;
  column: number;
}

const HEAD = {
  inputs: { sentence: SENTENCE, causal: true, divided: false, d_v: INPUTS["002.5"].d_v, row: 1, column: 0 },
  shares: "002.head",
};

export const FEATURE_VECTORS: Stop<HeadInputs> = {
  id: "002.5",
  ...HEAD,
  question: number(embedWords(SENTENCE).vocabulary.length),
  link: { target: () => ({ view: "steps", part: "embedding" }) },
};

/** The cells, by row and column, that the question offers. */
const OFFERED = [
  [1, 3],
  [3, 7],
  [7, 3],
] as const;

/** The index of the offered cell that is equal to S_31. */
function equalScore(): number {
  const { scores } = runEightWords(HEAD.inputs);
  return OFFERED.findIndex(([i, j]) => scores[i - 1]![j - 1] === scores[2]![0]);
}

export const QUERIES_AND_KEYS: Stop<HeadInputs> = {
  id: "002.6",
  ...HEAD,
  question: { kind: "choice", answer: equalScore() },
  link: { target: () => ({ view: "steps", part: "head", step: "compare" }) },
};

export const MASK_AND_SOFTMAX: Stop<HeadInputs> = {
  id: "002.7",
  ...HEAD,
  question: number(softmax([Math.log(3), 0])[0]!),
  link: { target: () => ({ view: "steps", part: "head", step: "softmax" }) },
};

const EXERCISE = {
  P: [[1 / 4, 3 / 4]],
  V: [
    [4, 0],
    [8, -4],
  ],
};

export const VALUES: Stop<HeadInputs> = {
  id: "002.8",
  ...HEAD,
  question: number(matmul(EXERCISE.P, EXERCISE.V)[0]![0]!),
  link: { target: () => ({ view: "steps", part: "head", step: "sum" }) },
};

export const LOOPS: Stop<{ words: number; kept: boolean }> = {
  id: "002.9",
  inputs: { words: INPUTS["002.9"].words, kept: false },
  question: number(fiveProducts(MAX_WORDS, FEATURES, FEATURES, 8)[3]!.multiplications),
  link: { live: true, target: () => ({ view: "labs", lab: "matrix", settings: {} }) },
};

/** The kind of each word in “a tired old gray duck”. */
const DUCK: Kind[] = ["determiner", "adjective", "adjective", "adjective", "noun"];

export const RELATIONSHIP: Stop<{ W_Q: Rows }> = {
  id: "002.10",
  inputs: { W_Q: RELATIONSHIPS.modifier },
  question: number(relate(RELATIONSHIPS.modifier, DUCK)[4]![2]!),
  link: { target: () => ({ view: "heads" }) },
};

export interface LossInputs {
  logits: number[];
  target: number;
  rate: number;
}

const { logits, target, rate } = INPUTS["002.11"];

export const ONE_TOKEN_LOSS: Stop<LossInputs> = {
  id: "002.11",
  inputs: { logits, target, rate },
  question: number(nextWordLoss([0, 0, 0, 0], 0).gradient[0]!),
  link: {
    live: true,
    target: () => ({ view: "learning", text: "The quick brown fox jumps over the lazy dog" }),
  },
};

export const lecture002: Lecture = {
  id: "002",
  stops: [
    TWO_QUESTIONS,
    SKIP_GRAM,
    MAIN_TASK,
    SLIDING_WINDOW,
    FEATURE_VECTORS,
    QUERIES_AND_KEYS,
    MASK_AND_SOFTMAX,
    VALUES,
    LOOPS,
    RELATIONSHIP,
    ONE_TOKEN_LOSS,
  ],
};
