/** Normalizers: what happens to a text before it is split. */

import { toByteCharacters } from "./bytes";
import { type TokenizerPart, unsupported } from "./file";
import { translateRegex } from "./regex";

export type Normalizer = (text: string) => string;

export function makeNormalizer(part?: TokenizerPart | null): Normalizer {
  if (!part) return (text) => text;
  switch (part.type) {
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
      return (text) => text.normalize(part.type);
    case "Lowercase":
      return lowercase;
    case "Replace":
      return makeReplace(part);
    case "Prepend":
      return (text) => (text ? `${part.prepend as string}${text}` : "");
    case "Strip":
      return makeStrip(part.strip_left as boolean, part.strip_right as boolean);
    case "ByteLevel":
      return toByteCharacters;
    case "Sequence":
      return makeSequence((part.normalizers as TokenizerPart[]).map(makeNormalizer));
    default:
      return unsupported(`the normalizer ${part.type}`);
  }
}

/** Replaces each match of a text or regular expression. */
export function makeReplace(part: TokenizerPart): Normalizer {
  const content = part.content as string;
  const regex = makePattern(part.pattern);
  return (text) => text.replace(regex, () => content);
}

/** The pattern of a part: a text, or a regular expression. */
export function makePattern(pattern: unknown): RegExp {
  const { String: text, Regex: regex } = pattern as { String?: string; Regex?: string };
  if (regex !== undefined) return translateRegex(regex);
  return new RegExp(text!.replace(/[\^$\\.*+?()[\]{}|/]/g, "\\$&"), "gu");
}

/** Each character by itself, so that a capital sigma at the end of a word becomes σ, not ς. */
function lowercase(text: string): string {
  return text
    .split("Σ")
    .map((part) => part.toLowerCase())
    .join("σ");
}

function makeStrip(left: boolean, right: boolean): Normalizer {
  return (text) => {
    if (left) text = text.replace(/^\p{White_Space}+/u, "");
    return right ? text.replace(/(?<!\p{White_Space})\p{White_Space}+$/u, "") : text;
  };
}

function makeSequence(normalizers: Normalizer[]): Normalizer {
  return (text) => normalizers.reduce((normalized, normalize) => normalize(normalized), text);
}
