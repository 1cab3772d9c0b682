/** Lecture 000, "From static to contextual embeddings, and the transformer block". */

import INPUTS from "../../../src/clearhead/lectures/inputs.json";
import { runInduction, type WorkingHeads } from "../model/inductionCircuit";
import { layerNorm, type TinyBlock } from "../model/tinyBlock";
import { matmul, type Rows, runTinyHead, softmax } from "../model/tinyHead";
import { changedRows, IDENTITY, runAttention } from "../model/workedNumbers";
import type { Lecture, Question, Stop } from "./types";

const number = (answer: number): Question => ({ kind: "number", answer });

/** A head and a token of the model; -1 for those that are selected on the page. */
export interface ModelPlace {
  block: number;
  head: number;
  row: number;
}

const SELECTED: ModelPlace = { block: -1, head: -1, row: -1 };

/** The parts of a place that the reader chose in the figure. */
const chosen = (place: Partial<ModelPlace>) =>
  Object.fromEntries(Object.entries(place).filter(([, value]) => value >= 0)) as Partial<ModelPlace>;

export const PAIRS = INPUTS["000.1"].pairs as [string, string][];

/** The index of the option that says where two sentences with different last words have different vectors. */
function whereLastWordShows(): number {
  const before: Rows = [
    [1, 0],
    [0, 1],
    [1, 1],
    [0.5, 0],
  ];
  const after = before.with(-1, [0, 0.5]);
  const changed = changedRows(runAttention(before), runAttention(after));
  return changed.length === before.length ? 0 : changed.length > 1 ? 1 : 2;
}

export const STATIC_AND_CONTEXTUAL: Stop<{ one: string; other: string; token: string }> = {
  id: "000.1",
  inputs: { one: PAIRS[0]![0], other: PAIRS[0]![1], token: "it" },
  question: { kind: "choice", answer: whereLastWordShows() },
  link: {
    live: true,
    target: ({ one, other, token }) => ({
      view: "words",
      typed: { word: token.trim(), sentences: `${one}\n${other}` },
    }),
  },
};

export const SELECTIVE_INTEGRATION: Stop<ModelPlace> = {
  id: "000.2",
  inputs: SELECTED,
  question: number(matmul([[0.5, 0.25, 0.25]], [[2], [4], [10]])[0]![0]!),
  link: { target: (place) => ({ view: "steps", part: "head", step: "softmax", ...chosen(place) }) },
};

export const THREE_TOKENS = INPUTS["000.3"].words;
const EXERCISE: Rows = [
  [2, 0],
  [0, 1],
  [1, 0],
];

export type Source = "hand" | "model";

export const SIMPLEST_ATTENTION: Stop<{ x: Rows; i: number; source: Source }> = {
  id: "000.3",
  inputs: { x: INPUTS["000.3"].x, i: 2, source: "hand" },
  question: number(
    runTinyHead({ x: EXERCISE, W_Q: IDENTITY, W_K: IDENTITY, W_V: IDENTITY, divided: false, causal: true })
      .weights[2]![0]!,
  ),
  link: { target: () => ({ view: "steps", part: "head", step: "compare" }) },
};

const ZEROS: Rows = [
  [0, 0],
  [0, 0],
];

interface Roles {
  x: Rows;
  W_Q: Rows;
  W_K: Rows;
  W_V: Rows;
}

const ROLES: Roles = { x: SIMPLEST_ATTENTION.inputs.x, ...INPUTS["000.4"] };

export const THREE_ROLES: Stop<Roles> = {
  id: "000.4",
  inputs: ROLES,
  question: number(runTinyHead({ ...ROLES, W_Q: ZEROS, divided: false, causal: true }).weights[2]![0]!),
  link: { target: () => ({ view: "steps", part: "head", step: "project" }) },
};

export const DIVIDING: Stop<{ d_k: number; seed: number }> = {
  id: "000.5",
  inputs: INPUTS["000.5"],
  question: number(Math.sqrt(64) / Math.sqrt(4)),
  link: { target: () => ({ view: "labs", lab: "scale", settings: {} }) },
};

export const HEAD_STEPS = ["project", "compare", "divide", "softmax", "weigh", "sum", "write"] as const;

export const STEP_BY_STEP: Stop<ModelPlace & { step: number }> = {
  id: "000.6",
  inputs: { block: -1, head: -1, row: 2, step: 0 },
  question: number(softmax([2, 0, 2].map((score) => score / Math.sqrt(4)))[2]!),
  link: {
    target: ({ step, ...place }) => ({
      view: "steps",
      part: "head",
      step: HEAD_STEPS[step]!,
      ...chosen(place),
    }),
  },
};

/** A text in which every role has something to do. */
export const STORY = INPUTS["000.7"].story;

export const ROLE_KINDS = ["previous", "antecedent", "induction"] as const;
export type RoleKind = (typeof ROLE_KINDS)[number];

export const MANY_HEADS: Stop<{ kind: RoleKind; row: number }> = {
  id: "000.7",
  inputs: { kind: "previous", row: -1 },
  question: number(768 / 12),
  link: { target: ({ kind }) => ({ view: "heads", order: kind }) },
};

const NORM_EXERCISE = layerNorm([2, 4, 6], [1, 1, 1], [0, 0, 0]);

export const BLOCK: Stop<TinyBlock & { source: Source; row: number }> = {
  id: "000.8",
  inputs: { ...INPUTS["000.8"], relu: true, source: "hand", row: -1 },
  question: number(NORM_EXERCISE.scores[2]!),
  link: { target: () => ({ view: "steps", part: "norm", step: "norm" }) },
};

export const STACK: Stop<{ row: number }> = {
  id: "000.9",
  inputs: { row: -1 },
  question: number(14 * 128),
  link: { target: ({ row }) => ({ view: "lens", ...chosen({ row }) }) },
};

/** The index of the option that says which streams change with the first letter if no head works. */
function streamsThatChange(): number {
  const [before, after] = ["ABCA", "DBCA"].map((sequence) => {
    const { own, before, copied } = runInduction(sequence, { previous: false, induction: false });
    return own.map((letter, i) => [...letter, ...before[i]!, ...copied[i]!]);
  });
  const changed = changedRows(before!, after!);
  return changed.length === 1 ? 0 : changed.length < before!.length ? 1 : 2;
}

export const RESIDUAL_STREAM: Stop<{ sequence: string } & WorkingHeads> = {
  id: "000.10",
  inputs: { ...INPUTS["000.10"], previous: true, induction: true },
  question: { kind: "choice", answer: streamsThatChange() },
  link: { target: () => ({ view: "heads", order: "induction" }) },
};

export const lecture000: Lecture = {
  id: "000",
  stops: [
    STATIC_AND_CONTEXTUAL,
    SELECTIVE_INTEGRATION,
    SIMPLEST_ATTENTION,
    THREE_ROLES,
    DIVIDING,
    STEP_BY_STEP,
    MANY_HEADS,
    BLOCK,
    STACK,
    RESIDUAL_STREAM,
  ],
};
