/** The symbols of sites and weights in formulas, as in the lectures. */

import { parseSite } from "./sites";
import type { Config } from "../engine/types";

export interface Notation {
  letter: string;
  superscript: string; // superscript
}

const LETTERS: Record<string, string> = {
  embedding: "e",
  position: "p",
  input: "x",
  normed: "t 1",
  attention: "t 2",
  attention_normed: "t̂ 2",
  middle: "t 3",
  normed2: "t 4",
  feedforward: "t 5",
  feedforward_normed: "t̂ 5",
  output: "h",
  hidden_raw: "u",
  hidden_gate: "g",
  hidden_up: "u",
  hidden: "a",
  final: "f",
  logits: "ℓ",
  probabilities: "P",
  "embedding.W": "W E",
  "position.W": "W P",
  "unembedding.W": "W U",
};

const HEAD_LETTERS: Record<string, string> = {
  query_raw: "q",
  key_raw: "k",
  query_normed: "q̂",
  key_normed: "k̂",
  query: "q",
  key: "k",
  value: "v",
  scores: "s",
  scaled: "s′",
  masked: "m",
  weights: "α",
  weighed: "αv",
  mixed: "z",
  output: "o",
};

/** Symbols before QK-norm and rotation. Without either, the raw vectors are the ones compared. */
const RAW: Record<string, string> = { query_raw: "q̃", key_raw: "k̃" };

export function notationOf(name: string, config: Pick<Config, "position" | "qk_norm">): Notation {
  const { head, part } = parseSite(name);
  const transformed = config.position === "rotary" || config.qk_norm;
  if (head !== null && transformed && RAW[part] !== undefined) return { letter: RAW[part], superscript: "" };
  const end = part.split(".").at(-1)!;
  if (part !== end || part === "gain" || part === "shift") {
    const greek = { mean: "μ", scale: "σ", gain: "γ", shift: "β" }[end];
    if (greek !== undefined) return { letter: greek, superscript: "" };
  }
  const weight = /^([Wb])_(\w+)$/.exec(part);
  if (weight) return { letter: weight[1]!, superscript: weight[2] === "gate" ? "g" : weight[2]! };
  const known = head !== null ? HEAD_LETTERS[part] : LETTERS[part];
  const [letter = part, superscript = ""] = (known ?? part).split(" ");
  return { letter, superscript };
}
