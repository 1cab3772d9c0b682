/** A head designed by hand for one relationship: which kind of word looks for which other kind. */

import { type Rows, runTinyHead } from "./tinyHead";

export const KINDS = ["determiner", "adjective", "noun", "verb", "preposition"] as const;
export type Kind = (typeof KINDS)[number];

export const KINDS_OF_WORDS: readonly (readonly [string, Kind])[] = [
  ["The", "determiner"],
  ["quick", "adjective"],
  ["brown", "adjective"],
  ["fox", "noun"],
  ["jumps", "verb"],
  ["over", "preposition"],
  ["the", "determiner"],
  ["lazy", "adjective"],
];

const BOOST = 10; // of the keys, so that the softmax is sharp

const oneHot = (kind: Kind) => KINDS.map((each) => (each === kind ? 1 : 0));

/** The query matrix of a relationship: in the row of each kind, a 1 for every kind that it looks for. */
export function queryMatrix(relationship: Partial<Record<Kind, readonly Kind[]>>): Rows {
  return KINDS.map((kind) => KINDS.map((sought) => (relationship[kind]?.includes(sought) ? 1 : 0)));
}

export const RELATIONSHIPS: Record<"modifier" | "subject" | "governor", Rows> = {
  modifier: queryMatrix({ noun: ["adjective"] }),
  subject: queryMatrix({ verb: ["noun"] }),
  governor: queryMatrix({ preposition: ["verb"] }),
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
