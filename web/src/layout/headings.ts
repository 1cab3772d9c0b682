/** The names over the flow's columns: on screen doors to their parts, in a picture only names. */

import type { Role } from "../model/sites";
import type { ColumnName, MinWidths } from "./columns";
import type { Config } from "../engine/types";
import type { Messages } from "../messages/en";
import type { PartName } from "../model/steps";

export interface Heading {
  column: ColumnName;
  text: string;
  part?: PartName; // that it opens
  site?: number;
  outer?: boolean; // of the whole model, over the block's own
  role?: Role;
}

export function makeHeadings(
  { flow }: Messages,
  head: number,
  { n_block, n_head }: { n_block: number; n_head: number },
): Heading[] {
  return [
    { column: "tokens", text: flow.tokens, outer: true },
    { column: "embedding", text: flow.embedding, part: "embedding", outer: true },
    { column: "norm", text: flow.norm, part: "norm" },
    { column: "query", text: flow.query, part: "head", site: 0, role: "query" },
    { column: "key", text: flow.key, part: "head", site: 1, role: "key" },
    { column: "value", text: flow.value, part: "head", site: 2, role: "value" },
    { column: "attention", text: flow.attention(head, n_head), role: "attention" },
    { column: "norm2", text: flow.norm, part: "norm2" },
    { column: "feedforward", text: flow.feedforward, part: "feedforward", role: "feedforward" },
    { column: "blocks", text: flow.others(0, n_block - 1), outer: true },
    { column: "final", text: flow.final, part: "final", outer: true },
  ];
}

export const OUTER = 13; // pixels of a letter
export const INNER = 12;
const ARROWS = 40; // pixels beside what can be turned
const BEFORE_A_BLOCK = 18;

/** What the headings take at least. */
export function headingWidths(headings: Heading[]): MinWidths {
  const room: MinWidths = {};
  for (const { column, text, outer } of headings) {
    const extra = column === "attention" ? ARROWS : column === "embedding" ? BEFORE_A_BLOCK : 0;
    room[column] = widthOf(text, outer ? OUTER : INNER) + 4 + extra;
  }
  return room;
}

/** About as wide as letters are, rather more than less: known before a font has come. */
function widthOf(text: string, size: number): number {
  return Array.from(text).reduce(
    (sum, letter) => sum + size * (/[mwMW]/.test(letter) ? 0.92 : /[ijlftr .·/-]/.test(letter) ? 0.4 : 0.64),
    0,
  );
}

/** The title of the prediction: a causal model predicts the next word, a bidirectional one the words of the text. */
export function predictionTitle(words: Messages, config: Pick<Config, "causal"> | null): string {
  return config?.causal === false ? words.flow.lastWord : words.flow.nextWord;
}
