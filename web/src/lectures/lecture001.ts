/** Lecture 001, "Transformers by worked numbers". */

import INPUTS from "../../../src/clearhead/lectures/inputs.json";
import { countSentence } from "../model/countedNgram";
import { embed, EXAMPLES, runTinyHead, type Rows, type TinyExample } from "../model/tinyHead";
import {
  attend,
  changedRows,
  IDENTITY,
  linearScores,
  runAttention,
  runOrdered,
  scaled,
  zerosUntilBelow,
} from "../model/workedNumbers";
import type { Lecture, Question, Stop, Target } from "./types";

const LOOKING_FOR_ONES: Rows = [
  [0, 1],
  [0, 1],
];
const BOOSTED = scaled(IDENTITY, 10);

const number = (answer: number): Question => ({ kind: "number", answer });

const openTinyHead = (example: Partial<TinyExample>): Target => ({
  view: "tiny",
  tiny: structuredClone({ ...EXAMPLES.plain, ...example }),
});

/** How much of the past a model knows: an n-gram model knows the last few tokens, the others all of it. The
 * last model is the loaded one; the rest are counted. */
export const PASTS = ["1", "2", "3", "all", "model"] as const;
export type Past = (typeof PASTS)[number];
export const orderOf = (past: Past) => Number(past) || Infinity;

const TEXT = INPUTS["001.1"].text.join("\n");
export const SENTENCES = ["the chicken was tired", "the chicken was wide", "the chicken crossed the road"];

export const LANGUAGE_MODELING: Stop<{ text: string; sentence: string; past: Past }> = {
  id: "001.1",
  inputs: { text: TEXT, sentence: INPUTS["001.1"].sentence, past: "2" },
  question: number(countSentence(TEXT, "the road was tired", 2).at(-1)!.product),
  link: { target: () => ({ view: "steps", part: "final" }) },
};

/** The static vector of each word in two sentences. */
const STATIC: Record<string, number[]> = INPUTS["001.2"].vectors;
export const BATS_SENTENCES = INPUTS["001.2"].sentences;
export const staticVectors = (sentence: string): Rows =>
  sentence.split(" ").map((word) => [...STATIC[word]!]);

/** The index of the option that says which outputs change with the second of three vectors. */
function outputsThatChange(): number {
  const [before, after] = [staticVectors(BATS_SENTENCES[0]!), staticVectors(BATS_SENTENCES[0]!)];
  after[1]![0]! += 1;
  return changedRows(runAttention(before), runAttention(after)).length - 1;
}

export const SHARED_API: Stop<{ sentence: string; x: Rows }> = {
  id: "001.2",
  inputs: { sentence: BATS_SENTENCES[0]!, x: staticVectors(BATS_SENTENCES[0]!) },
  question: { kind: "choice", answer: outputsThatChange() },
  link: {
    live: true,
    target: () => ({
      view: "words",
      typed: { word: "bats", sentences: [...BATS_SENTENCES].reverse().join("\n") },
    }),
  },
};

export const RUNNING_EXAMPLE: Stop<{ zeros: number; steps: number; seed: number }> = {
  id: "001.3",
  inputs: INPUTS["001.3"],
  question: number(zerosUntilBelow(0.9, 0.01)),
  link: { target: () => ({ view: "labs", lab: "any-one", settings: {} }) },
};

export type Base = "e" | "3";
export const baseOf = (base: Base) => (base === "e" ? Math.E : 3);

export const KEYS_AND_QUERY: Stop<{ sequence: string; query: number[]; base: Base }> = {
  id: "001.4",
  inputs: { sequence: "0010", query: [0, 1], base: "3" },
  question: number(attend(embed("0110"), [0, 1], 3).weights[1]!),
  link: {
    target: ({ sequence, query, base }) =>
      openTinyHead({ sequence, W_Q: [query, query], W_K: scaled(IDENTITY, Math.log(baseOf(base))) }),
  },
};

export const LONG_SEQUENCES: Stop<{ zeros: number; boost: number }> = {
  id: "001.5",
  inputs: { zeros: 100, boost: 1 },
  question: number(Math.log(100)),
  link: {
    live: true,
    target: ({ zeros, boost }) => ({
      view: "labs",
      lab: "attention",
      settings: { sequence: `1${"0".repeat(zeros)}`, boost },
    }),
  },
};

const EXERCISE: Rows = [
  [1, 2],
  [3, 4],
];

export const LINEAR_ATTENTION: Stop<{ k: number[]; q: number[]; W_K: Rows; W_Q: Rows }> = {
  id: "001.6",
  inputs: { k: [0, 1], q: [1, 0], W_K: BOOSTED, W_Q: LOOKING_FOR_ONES },
  question: number(linearScores([0, 1], [1, 0], EXERCISE, IDENTITY).linear),
  link: { target: ({ W_K, W_Q }) => openTinyHead({ sequence: "01", W_K, W_Q }) },
};

/** The index of the option that says which digit a 0 looks for if W^Q swaps the two numbers. */
function digitSoughtByZero(): number {
  const W_Q = [...IDENTITY].reverse();
  const { weights } = runTinyHead({ ...EXAMPLES.boosted, W_Q, x: embed("01") });
  return weights[0]!.indexOf(Math.max(...weights[0]!));
}

export const SELF_ATTENTION: Stop<{ sequence: string; W_Q: Rows; W_K: Rows }> = {
  id: "001.7",
  inputs: { sequence: "0010", W_Q: LOOKING_FOR_ONES, W_K: BOOSTED },
  question: { kind: "choice", answer: digitSoughtByZero() },
  link: { target: (inputs) => openTinyHead(inputs) },
};

interface TwoTokens {
  W_Q: Rows;
  W_K: Rows;
  W_V: Rows;
  W_O: Rows;
  divided: boolean;
}

export const QUERY_CASES: Rows[] = [IDENTITY, LOOKING_FOR_ONES];

export const TWO_TOKENS: Stop<TwoTokens> = {
  id: "001.8",
  inputs: { W_Q: IDENTITY, W_K: BOOSTED, W_V: IDENTITY, W_O: IDENTITY, divided: false },
  question: number(runTinyHead({ ...EXAMPLES.own, W_K: IDENTITY, x: embed("01") }).weights[0]![0]!),
  link: {
    target: ({ W_Q, W_K, W_V, divided }) => openTinyHead({ sequence: "01", W_Q, W_K, W_V, divided }),
  },
};

/** The index of the option that says whether the last token of two sequences gets the same output. */
function isOrderSeen(causal: boolean, positions: boolean): number {
  const [one, other] = ["0010", "1000"].map((each) => runOrdered(embed(each), causal, positions).output[3]!);
  return changedRows([one!], [other!]).length;
}

export const MASK_AND_POSITION: Stop<{ sequence: string; causal: boolean; positions: boolean }> = {
  id: "001.9",
  inputs: { sequence: "0110", causal: true, positions: false },
  question: { kind: "choice", answer: isOrderSeen(true, false) },
  link: { target: () => ({ view: "labs", lab: "position", settings: {} }) },
};

export const lecture001: Lecture = {
  id: "001",
  stops: [
    LANGUAGE_MODELING,
    SHARED_API,
    RUNNING_EXAMPLE,
    KEYS_AND_QUERY,
    LONG_SEQUENCES,
    LINEAR_ATTENTION,
    SELF_ATTENTION,
    TWO_TOKENS,
    MASK_AND_POSITION,
  ],
};
