import { expect, test } from "vitest";
import {
  countListed,
  FEW_PARTS,
  sumOf,
  topContributions,
  feedforwardBlock,
  relativeSize,
  parseHeadSite,
  parsePath,
  formatPath,
} from "../../src/model/attributionPath";
import type { Attribution } from "../../src/engine/types";

test("round-trips a path and rejects invalid ones", () => {
  const path = [
    { block: 9, head: 1, source: 4 },
    { block: 3, head: 0, source: 0 },
  ];
  expect(parsePath(formatPath(path))).toEqual(path);
  for (const wrong of ["", "1.2", "1.2.3-4.5.6", "a.b.c", "1.1.1-", null])
    expect(parsePath(wrong)).toEqual([]);
});

test("lists the largest contributions first", () => {
  const attribution = {
    heads: [
      { block: 1, head: 0, values: [0.5, -2] },
      { block: 0, head: 3, values: [1, null] },
    ],
  } as unknown as Attribution;
  expect(topContributions(attribution, 2)).toEqual([
    { block: 1, head: 0, source: 1, value: -2 },
    { block: 0, head: 3, source: 0, value: 1 },
  ]);
  expect(parseHeadSite("block.12.head.3.output")).toEqual({ block: 12, head: 3 });
  expect(parseHeadSite("block.12.feedforward")).toBeNull();
  expect(feedforwardBlock("block.12.feedforward")).toBe(12);
});

test("sizes grow with the square root of the amount, whatever its sign", () => {
  expect(relativeSize(-4, 16)).toBe(0.5);
  expect(relativeSize(16, 16)).toBe(1);
});

test("lists parts until the sum of the others is no longer the largest", () => {
  const parts = (...values: number[]) => values.map((value, i) => ({ name: `part ${i}`, value }));
  expect(countListed(parts(3, 2, 1))).toBe(3);
  expect(countListed([])).toBe(0);
  const even = parts(...Array.from({ length: 40 }, () => 1)); // after n parts, the others sum to 40 − n
  expect(countListed(even)).toBe(39);
  const canceling = parts(5, ...Array.from({ length: 40 }, (_, i) => (i % 2 ? 1 : -1)));
  expect(countListed(canceling)).toBe(FEW_PARTS);
  const mixed = parts(4, -3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
  const count = countListed(mixed);
  expect(count).toBe(10);
  expect(sumOf(mixed.slice(0, count)) + sumOf(mixed.slice(count))).toBe(sumOf(mixed));
});
