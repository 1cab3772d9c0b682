import { expect, test } from "vitest";
import {
  decodeEscaped,
  decodeLossy,
  decodeStrict,
  encodeUtf8,
  fromByteCharacters,
  toByteCharacters,
} from "../../../src/engine/tokenizer/bytes";

test("every byte is spelled as a printable character, and back", () => {
  expect(toByteCharacters(" it\n")).toBe("ĠitĊ");
  expect(toByteCharacters("é\u00ad\x7f")).toBe("Ã©ÂŃġ");
  const all = Array.from({ length: 0x250 }, (_, i) => String.fromCharCode(i)).join("");
  expect(fromByteCharacters(toByteCharacters(all))).toEqual([...encodeUtf8(all)]);
  expect(fromByteCharacters("日")).toBeNull();
});

test("bytes that are not UTF-8 are replaced, rejected or escaped", () => {
  const bytes = [0x61, 0xe2, 0x82, 0x62, 0xff, 0xe2, 0x82, 0xac, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0xf0, 0x9f];
  expect(decodeLossy(bytes)).toBe(`a�b�€${"�".repeat(6)}`);
  expect(decodeStrict(bytes)).toBeNull();
  expect(decodeEscaped(bytes)).toBe("a\\xe2\\x82b\\xff€\\xc0\\x80\\xed\\xa0\\x80\\xf0\\x9f");
  expect(decodeEscaped([0xef, 0xbb, 0xbf, 0x61])).toBe("\ufeffa");
  expect(decodeLossy([0xef, 0xbb, 0xbf, 0x61])).toBe("\ufeffa");
});
