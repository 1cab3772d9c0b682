/** The headings above the flow's columns. */

import type { Role } from "../model/sites";
import type { ColumnName, MinWidths } from "./columns";
import type { Config } from "../engine/types";
import type { Messages } from "../messages/en";
import type { PartName } from "../model/steps";

export interface Heading {
  column: ColumnName;
  text: string;
  part?: PartName; // the part that a click opens
  site?: number;
  outer?: boolean; // whether it belongs to the whole model instead of the block
  role?: Role;
}

export function makeHeadings({ flow }: Messages, head: number, { n_block }: { n_block: number }): Heading[] {
  return [
    { column: "tokens", text: flow.tokens, outer: true },
    { column: "embedding", text: flow.embedding, part: "embedding", outer: true },
    { column: "norm", text: flow.norm, part: "norm" },
    { column: "query", text: flow.query, part: "head", site: 0, role: "query" },
    { column: "key", text: flow.key, part: "head", site: 1, role: "key" },
    { column: "value", text: flow.value, part: "head", site: 2, role: "value" },
    { column: "attention", text: flow.attention(head), role: "attention" },
    { column: "norm2", text: flow.norm, part: "norm2" },
    { column: "feedforward", text: flow.feedforward, part: "feedforward", role: "feedforward" },
    { column: "blocks", text: flow.others(0, n_block - 1), outer: true },
    { column: "final", text: flow.final, part: "final", outer: true },
  ];
}

export const OUTER_FONT_SIZE = 13; // font size in pixels
export const INNER_FONT_SIZE = 12;
const ARROWS_WIDTH = 40; // width of the buttons beside a heading, in pixels
const BLOCK_MARGIN = 18;

/** The smallest column widths that fit the headings. */
export function headingWidths(headings: Heading[]): MinWidths {
  const widths: MinWidths = {};
  for (const { column, text, outer } of headings) {
    const extra = column === "attention" ? ARROWS_WIDTH : column === "embedding" ? BLOCK_MARGIN : 0;
    widths[column] = estimateWidth(text, outer ? OUTER_FONT_SIZE : INNER_FONT_SIZE) + 4 + extra;
  }
  return widths;
}

/** An upper estimate of the text width that does not need the font. */
function estimateWidth(text: string, size: number): number {
  return Array.from(text).reduce(
    (sum, character) =>
      sum + size * (/[mwMW]/.test(character) ? 0.92 : /[ijlftr .·/-]/.test(character) ? 0.4 : 0.64),
    0,
  );
}

/** The title of the prediction: a causal model predicts the next token, a bidirectional one the tokens of the text. */
export function predictionTitle(
  words: Messages,
  config: Pick<Config, "causal"> | null,
  hasWords = true, // otherwise, its tokens are characters or bytes
): string {
  if (config?.causal === false) return words.flow.lastWord;
  return hasWords ? words.flow.nextWord : words.flow.nextToken;
}
