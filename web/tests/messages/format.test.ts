import { afterEach, expect, test } from "vitest";
import {
  byteHint,
  count,
  fixed,
  percent,
  localizeDecimal,
  precise,
  short,
  positionLabel,
  tokenLabel,
} from "../../src/messages/format.svelte";
import { locale } from "../../src/messages/format.svelte";

afterEach(() => (locale.language = "en"));

test.each([
  [0, "0.00"],
  [-0.001, "0.00"],
  [1.239, "1.24"],
  [-9.991, "−9.99"],
  [-9.996, "−10.0"],
  [99.94, "99.9"],
  [123.4, "123"],
  [-Infinity, "−∞"],
  [NaN, "–"],
])("shows %d as %s", (number, text) => expect(short(number)).toBe(text));

test("formats a fixed number of decimals", () => expect(fixed(-2.34567, 3)).toBe("−2.346"));

test.each([
  [1, "100%"],
  [0.6023, "60%"],
  [0.0834, "8.3%"],
  [0.0031, "0.3%"],
  [0.00049, "<0.1%"],
  [1e-12, "<0.1%"],
  [0, "0%"],
  [0.994, "99%"],
  [0.9962, "99.6%"],
  [0.9998, ">99.9%"],
  [1 - 1e-9, ">99.9%"],
])("formats %d as %s", (share, text) => expect(percent(share)).toBe(text));

test("separates thousands by language", () => {
  expect(count(134515008, "en")).toBe("134,515,008");
  expect(count(134515008, "de")).toBe("134.515.008");
});

test.each([
  [" chicken", "␣chicken"],
  ["didn", "didn"],
  ["\n", "⏎"],
  ["a\x0b", "a␋"],
  ["a b ", "a b␣"],
  [" ", "␣"],
  ["", ""],
  ["  ", "␣␣"],
])("shows the token %j as %s", (token, text) => expect(tokenLabel(token)).toBe(text));

test.each([
  [0, "0.00"],
  [-1.234, "−1.23"],
  [19.731, "19.7"],
  [-123.4, "−123"],
  [0.0995, "0.10"],
  [0.0423, "0.042"],
  [-0.00423, "−0.0042"],
  [0.00001234, "1.2e−5"],
  [-Infinity, "−∞"],
])("shows %d precisely as %s", (number, text) => expect(precise(number)).toBe(text));

test("explains tokens that are part of a character", () => {
  const words = { byteToken: (token: string) => `bytes ${token}` };
  expect(["\\xc3", "\\xf0\\x9f", "x", "ü"].map((token) => byteHint(words, token))).toEqual([
    "bytes \\xc3",
    "bytes \\xf0\\x9f",
    undefined,
    undefined,
  ]);
});

test("uses a decimal comma and a space before the percent sign in German", () => {
  locale.language = "de";
  expect([short(-1.239), fixed(2.5, 1), percent(0.0834), precise(0.00001234), localizeDecimal(0.25)]).toEqual(
    ["−1,24", "2,5", "8,3\u202f%", "1,2e−5", "0,25"],
  );
  expect([short(123.4), percent(1), short(-Infinity)]).toEqual(["123", "100\u202f%", "−∞"]);
});

test("a repeated token is labeled with its position", () => {
  const tokens = ["it", ".", " she", "."];
  expect(tokens.map((_, row) => positionLabel(tokens, row))).toEqual(["it", ".₁", "␣she", ".₃"]);
});

test("a percentage has as many decimals as asked for", () => {
  expect(percent(0.1716, 1)).toBe("17.2%");
  expect(percent(0.0004, 1)).toBe("<0.1%");
  expect(percent(0.0004, 2)).toBe("0.04%");
  expect(percent(0.99998, 2)).toBe(">99.99%");
});
