/** Bytes of text: UTF-8, and the printable characters that byte-level tokens are spelled with. */

const ENCODER = new TextEncoder();
const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LOSSY = new TextDecoder("utf-8", { ignoreBOM: true });

// A printable byte stands for itself, and the others are mapped to U+0100 and up
// (https://github.com/openai/gpt-2, encoder.py).
const CHARACTER_OF: string[] = [];
for (let byte = 0, hidden = 0; byte < 256; byte++) {
  const printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
  CHARACTER_OF.push(String.fromCharCode(printable ? byte : 0x100 + hidden++));
}

/** The byte that each character stands for. */
export const BYTE_OF: ReadonlyMap<string, number> = new Map(
  CHARACTER_OF.map((character, i) => [character, i]),
);

export function encodeUtf8(text: string): Uint8Array {
  return ENCODER.encode(text);
}

/** Spells each byte of a text as a printable character. */
export function toByteCharacters(text: string): string {
  if (/^[!-~]*$/.test(text)) return text;
  let spelled = "";
  for (const byte of encodeUtf8(text)) spelled += CHARACTER_OF[byte]!;
  return spelled;
}

/** The bytes that characters stand for, or null if one of them stands for none. */
export function fromByteCharacters(text: string): number[] | null {
  const bytes: number[] = [];
  for (const character of text) {
    const byte = BYTE_OF.get(character);
    if (byte === undefined) return null;
    bytes.push(byte);
  }
  return bytes;
}

/** The text of these bytes; invalid UTF-8 becomes U+FFFD. */
export function decodeLossy(bytes: Iterable<number>): string {
  return LOSSY.decode(Uint8Array.from(bytes));
}

/** The text of these bytes, or null if they are not valid UTF-8. */
export function decodeStrict(bytes: Iterable<number>): string | null {
  try {
    return STRICT.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

/** The text of these bytes; an invalid one is shown as an escape such as "\xe2". */
export function decodeEscaped(bytes: number[]): string {
  const whole = decodeStrict(bytes);
  if (whole !== null) return whole;
  let text = "";
  for (let start = 0; start < bytes.length;) {
    const length = characterLength(bytes[start]!);
    const character =
      start + length <= bytes.length ? decodeStrict(bytes.slice(start, start + length)) : null;
    text += character ?? `\\x${bytes[start]!.toString(16).padStart(2, "0")}`;
    start += character === null ? 1 : length;
  }
  return text;
}

/** The number of bytes in a UTF-8 character with this first byte. */
function characterLength(first: number): number {
  if (first < 0xc0) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

/** The name of a byte among the tokens of a tokenizer with byte fallback. */
export function byteToken(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}
