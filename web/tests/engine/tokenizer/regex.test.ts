import { expect, test } from "vitest";
import { translateRegex } from "../../../src/engine/tokenizer/regex";

const find = (pattern: string, text: string) => text.match(translateRegex(pattern)) ?? [];

test("sets match what they do in Oniguruma", () => {
  expect(find("\\s", "a\u0085\ufeff\u3000")).toEqual(["\u0085", "\u3000"]);
  expect(find("[\\s]|\\S+", "ab c")).toEqual(["ab", " ", "c"]);
  expect(find("\\w+", "naïve²_3 ½x!")).toEqual(["naïve²_3", "½x"]);
  expect(find("\\W", "a-b")).toEqual(["-"]);
  expect(find("\\d+|\\h+|[\\D]", "٣4fz")).toEqual(["٣4", "f", "z"]);
  expect(find("\\p{lu}|\\p{^L}|\\P{Han}", "aB1")).toEqual(["a", "B", "1"]);
  expect(find("\\p{Cyrillic}+", "мир world")).toEqual(["мир"]);
});

test("a dot matches all but a line feed, and anchors match at line boundaries", () => {
  expect(find(".+", "a\rb\u2028c\nd")).toEqual(["a\rb\u2028c", "d"]);
  expect(find("^.|.$", "ab\ncd")).toEqual(["a", "b", "c", "d"]);
  expect(find("\\A.|.\\z", "ab\ncd")).toEqual(["a", "d"]);
});

test("possessive quantifiers and atomic groups do not backtrack", () => {
  expect(find("a++a", "aaa")).toEqual([]);
  expect(find("a?+ab", "ab")).toEqual([]);
  expect(find("(?>a+)ab", "aab")).toEqual([]);
  expect(find("a+ab", "aab")).toEqual(["aab"]);
  expect(find("\\s++$|\\s", "a  b  ")).toEqual([" ", " ", "  "]);
});

test("a plus after an interval repeats it, and a question mark makes it optional or lazy", () => {
  expect(find("(?:a{2}+)", "aaaaa")).toEqual(["aaaa"]);
  expect(find("a{2}?b", "aab b")).toEqual(["aab", "b"]);
  expect(find("a{1,3}?", "aaa")).toEqual(["a", "a", "a"]);
  expect(find("a{,2}b", "aaab")).toEqual(["aab"]);
  expect(find("a{x}", "a{x}")).toEqual(["a{x}"]);
  expect(find("a+?b*?", "ab")).toEqual(["a"]);
});

test("groups may ignore case", () => {
  expect(find("(?i:'s|'K)x", "'Sx 'ſx 'kx 'Kx 'sX")).toEqual(["'Sx", "'ſx", "'kx", "'Kx"]);
  expect(find("'(?i:[sd]|ll)", "'S 'Ll 'l")).toEqual(["'S", "'Ll"]);
  expect(find("a(?i)b|c", "aB C aC")).toEqual(["aB", "aC"]);
});

test("classes hold punctuation, ranges and escapes", () => {
  expect(find("[]a-]", "]a-b")).toEqual(["]", "a", "-"]);
  expect(find("[^\\r\\n\\]x-z]", "]\ny😀")).toEqual(["😀"]);
  expect(find("[\\x41-\\u0043\\x{1F600}]", "AC😀D")).toEqual(["A", "C", "😀"]);
  expect(find("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]+", "a[\\]^b")).toEqual(["[\\]^"]);
});

test("lookarounds and named groups are kept", () => {
  expect(find("(?<=a)b(?!c)|(?<!x)y(?=z)|(?<name>q)(r)", "ab abc yz xyz qr")).toEqual(["b", "y", "qr"]);
});

test.each([
  "(?<a>b)\\k<a>",
  "(a)\\1",
  "[a&&[b]]",
  "[[:alpha:]]",
  "\\b",
  "\\X",
  "(?x: a)",
  "(?i:[a-z])",
  "(a",
  "a)",
  "[a",
  "\\p{Nothing}",
  "(?i:é)",
])("%s is refused by name", (pattern) => {
  expect(() => translateRegex(pattern)).toThrow(
    `the regular expression ${JSON.stringify(pattern)}, which is not`,
  );
});
