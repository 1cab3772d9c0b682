/** Pre-tokenizers: how a text is split into the pieces that the model turns into tokens one by one. */

import { toByteCharacters } from "./bytes";
import { type TokenizerPart, unsupported } from "./file";
import { makePattern } from "./normalizers";
import { translateRegex } from "./regex";
import { type PreToken, type SplitBehavior, splitPiece } from "./splitting";

export type PreTokenizer = (piece: PreToken) => PreToken[];

const GPT_2 = translateRegex(
  String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
);
const WORDS =
  /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\p{White_Space}]+/gu;

export function makePreTokenizer(part?: TokenizerPart | null): PreTokenizer {
  if (!part) return (piece) => [piece];
  switch (part.type) {
    case "ByteLevel":
      return makeByteLevel(part.add_prefix_space as boolean, part.use_regex !== false);
    case "Split":
      return makeSplit(makePattern(part.pattern), part.behavior as SplitBehavior, part.invert as boolean);
    case "Digits":
      return makeSplit(/\p{N}/gu, part.individual_digits ? "Isolated" : "Contiguous");
    case "Whitespace":
      return makeSplit(WORDS, "Removed", true);
    case "WhitespaceSplit":
      return makeSplit(/\p{White_Space}/gu, "Removed");
    case "Metaspace":
      return makeMetaspace(part);
    case "Sequence":
      return makeSequence((part.pretokenizers as TokenizerPart[]).map(makePreTokenizer));
    default:
      return unsupported(`the pre-tokenizer ${part.type}`);
  }
}

function makeSplit(regex: RegExp, behavior: SplitBehavior, invert = false): PreTokenizer {
  return (piece) => splitPiece(piece, regex, behavior, invert);
}

function makeByteLevel(addPrefixSpace: boolean, useRegex: boolean): PreTokenizer {
  return (piece) => {
    if (addPrefixSpace && !piece.text.startsWith(" ")) piece = { ...piece, text: ` ${piece.text}` };
    const pieces = useRegex ? splitPiece(piece, GPT_2, "Isolated") : [piece];
    for (const each of pieces) each.text = toByteCharacters(each.text);
    return pieces;
  };
}

/** Spells spaces as ▁, and splits before each. */
function makeMetaspace(part: TokenizerPart): PreTokenizer {
  const mark = part.replacement as string;
  const scheme = part.add_prefix_space === false ? "never" : (part.prepend_scheme ?? "always");
  const marks = makePattern({ String: mark });
  return ({ text, first }) => {
    text = text.replaceAll(" ", mark);
    const prepends = scheme === "always" || (scheme === "first" && first);
    if (prepends && !text.startsWith(mark)) text = mark + text;
    return part.split === false ? [{ text, first }] : splitPiece({ text, first }, marks, "MergedWithNext");
  };
}

function makeSequence(preTokenizers: PreTokenizer[]): PreTokenizer {
  return (piece) => preTokenizers.reduce((pieces, split) => pieces.flatMap(split), [piece]);
}
