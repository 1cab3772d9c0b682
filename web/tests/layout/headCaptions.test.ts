import { expect, test } from "vitest";
import { blockCaptions, headCaptions } from "../../src/layout/headCaptions";
import { blockGrid, patternPosition, sortedGrid } from "../../src/layout/headGrid";
import { en as words } from "../../src/messages/en";

test("blocks and heads are named beside the patterns", () => {
  const grid = blockGrid(2, 3, 1240, 560)!;
  const captions = blockCaptions(grid, 2, 3, { block: 1, head: 2 }, words);
  expect(captions.map(({ text }) => text)).toEqual([
    ...[0, 1, 2].map((head) => words.heads.head(head)),
    ...[0, 1].map((block) => words.heads.block(block)),
  ]);
  expect(captions.filter(({ strong }) => strong).map(({ text }) => text)).toEqual([
    words.heads.head(2),
    words.heads.block(1),
  ]);
  expect(captions[1]!.x).toBe(patternPosition(grid, 1)[0]);
  expect(captions[4]!.x).toBe(0);
});

test("each band names the heads, by number alone if patterns are small", () => {
  const grid = blockGrid(30, 9, 1240, 560)!;
  const bands = Math.ceil(30 / grid.rows);
  const captions = blockCaptions(grid, 30, 9, { block: 0, head: 0 }, words);
  expect(captions).toHaveLength(bands * 9 + 30);
  expect(captions.slice(0, 9).map(({ text }) => text)).toEqual(["0", "1", "2", "3", "4", "5", "6", "7", "8"]);
});

test("only some of the narrow columns are numbered", () => {
  const grid = { ...blockGrid(2, 12, 400, 200)!, side: 18, width: 10 };
  const texts = blockCaptions(grid, 2, 12, { block: 0, head: 0 }, words).map(({ text }) => text);
  expect(texts.slice(0, 4)).toEqual(["0", "", "2", ""]);
});

test("sorted heads are named with their scores", () => {
  const heads = [
    { block: 1, head: 0 },
    { block: 0, head: 2 },
  ];
  const selected = heads[1]!;
  const scoreOf = ({ block }: { block: number }) => (block === 1 ? 0.5 : null);
  const grid = sortedGrid(2, 600, 300);
  expect(headCaptions(grid, heads, selected, scoreOf).map(({ text }) => text)).toEqual(["1.0 · 50%", "0.2"]);
  expect(headCaptions(grid, heads, selected, scoreOf).map(({ strong }) => strong)).toEqual([false, true]);
  const small = { ...grid, side: 30 };
  expect(headCaptions(small, heads, selected, scoreOf).map(({ text }) => text)).toEqual(["50%", "0.2"]);
  expect(headCaptions({ ...small, caption: 0 }, heads, selected, scoreOf)).toEqual([]);
});
