/** Decoders: tokens back to text. */

import { decodeLossy, decodeStrict, encodeUtf8, fromByteCharacters } from "./bytes";
import { type TokenizerPart, unsupported } from "./file";
import { makeReplace } from "./normalizers";

/** From tokens to pieces of text, whose concatenation is the text. */
export type Decoder = (tokens: string[]) => string[];

export function makeDecoder(part?: TokenizerPart | null): Decoder {
  if (!part) return (tokens) => [tokens.join(" ")];
  switch (part.type) {
    case "ByteLevel":
      return (tokens) => [
        decodeLossy(tokens.flatMap((token) => fromByteCharacters(token) ?? [...encodeUtf8(token)])),
      ];
    case "ByteFallback":
      return decodeByteFallback;
    case "Metaspace":
      return makeMetaspace(part);
    case "Fuse":
      return (tokens) => [tokens.join("")];
    case "Strip":
      return makeStrip(part.content as string, part.start as number, part.stop as number);
    case "Replace": {
      const replace = makeReplace(part);
      return (tokens) => tokens.map(replace);
    }
    case "Sequence":
      return makeSequence((part.decoders as TokenizerPart[]).map(makeDecoder));
    default:
      return unsupported(`the decoder ${part.type}`);
  }
}

/** Each run of byte tokens becomes its text, or one U+FFFD for each byte if it is not valid UTF-8. */
function decodeByteFallback(tokens: string[]): string[] {
  const decoded: string[] = [];
  let bytes: number[] = [];
  const finish = () => {
    if (!bytes.length) return;
    const text = decodeStrict(bytes);
    decoded.push(text ?? "\ufffd".repeat(bytes.length));
    bytes = [];
  };
  for (const token of tokens) {
    const byte = /^<0x([0-9a-fA-F]{2}|\+[0-9a-fA-F])>$/.exec(token);
    if (byte) bytes.push(parseInt(byte[1]!, 16));
    else {
      finish();
      decoded.push(token);
    }
  }
  finish();
  return decoded;
}

/** Spells each ▁ as a space, except in the first token, if the tokenizer put it there. */
function makeMetaspace(part: TokenizerPart): Decoder {
  const mark = part.replacement as string;
  const never = part.add_prefix_space === false || part.prepend_scheme === "never";
  return (tokens) => tokens.map((token, i) => token.replaceAll(mark, i === 0 && !never ? "" : " "));
}

/** Removes a character from the start and the end of each token, at most `start` and `stop` times. */
function makeStrip(content: string, start: number, stop: number): Decoder {
  return (tokens) =>
    tokens.map((token) => {
      const characters = [...token];
      let first = 0;
      while (first < Math.min(start, characters.length) && characters[first] === content) first++;
      let last = characters.length;
      while (last > first && characters.length - last < stop && characters[last - 1] === content) last--;
      return characters.slice(first, last).join("");
    });
}

function makeSequence(decoders: Decoder[]): Decoder {
  return (tokens) => decoders.reduce((decoded, decode) => decode(decoded), tokens);
}
