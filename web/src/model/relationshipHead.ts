/** A head designed by hand for one relationship: which kind of word looks for which other kind. */

import INPUTS from "../../../src/clearhead/lectures/inputs.json";
import { type Rows, runTinyHead } from "./tinyHead";

export const KINDS = ["determiner", "adjective", "noun", "verb", "preposition"] as const;
export type Kind = (typeof KINDS)[number];

export const KINDS_OF_WORDS = INPUTS["002.10"].words as [string, Kind][];

const BOOST = 10; // of the keys, so that the softmax is sharp

const oneHot = (kind: Kind) => KINDS.map((each) => (each === kind ? 1 : 0));

/** The query matrix of a relationship: a 1 in the row of one kind, for the kind that it looks for. */
export function queryMatrix(kind: string, sought: string): Rows {
  return KINDS.map((row) => KINDS.map((column) => (row === kind && column === sought ? 1 : 0)));
}

const { modifier, subject, governor } = INPUTS["002.10"].relationships;
const matrixOf = ([kind, sought]: string[]) => queryMatrix(kind!, sought!);
export const RELATIONSHIPS: Record<"modifier" | "subject" | "governor", Rows> = {
  modifier: matrixOf(modifier),
  subject: matrixOf(subject),
  governor: matrixOf(governor),
};
export type Relationship = keyof typeof RELATIONSHIPS;

const KINDS_IN_ORDER = KINDS_OF_WORDS.map(([, kind]) => kind);

/** The weights of the causal head on words, by default the eight words. A word's features are a one-hot
 * vector of its kind. */
export function relate(W_Q: Rows, kinds: readonly Kind[] = KINDS_IN_ORDER): Rows {
  const identity = KINDS.map(oneHot);
  const W_K = identity.map((row) => row.map((value) => BOOST * value));
  const x = kinds.map(oneHot);
  return runTinyHead({ x, W_Q, W_K, W_V: identity, divided: false, causal: true }).weights;
}
