import { expect, test } from "vitest";
import { fitGrid, fontSize, HEADER_HEIGHT, partialSpan, wholeSpan } from "../../src/layout/grid";

test("cells shrink if that makes all columns fit", () => {
  expect(fitGrid([5, 10], 600, undefined, 25, 12)).toEqual({
    cellWidth: 50,
    rowHeight: 25,
    isCut: false,
    height: HEADER_HEIGHT + 125,
  });
  expect(fitGrid([5, 14], 600, undefined, 25, 12).cellWidth).toBe(37);
  expect(fitGrid([5, 128], 600, undefined, 25, 12)).toMatchObject({ cellWidth: 50, isCut: true });
});

test.each([[200], [233], [300], [417]])("only whole rows are in view in %i pixels", (height) => {
  for (const rows of [3, 14, 16, 40]) {
    const sizes = fitGrid([rows, 10], 600, height, 25, 12);
    expect((sizes.height - HEADER_HEIGHT) % sizes.rowHeight).toBe(0);
    expect(sizes.height).toBeLessThanOrEqual(height);
    expect(sizes.isCut).toBe(sizes.height < HEADER_HEIGHT + rows * sizes.rowHeight);
  }
});

test("a scrollbar takes its height from the rows", () => {
  const heights = [0, 12].map((scrollbar) => fitGrid([14, 128], 600, 260, 25, scrollbar));
  expect(heights.map(({ rowHeight }) => rowHeight)).toEqual([15, 15]);
  expect(heights.map(({ height }) => height)).toEqual([
    HEADER_HEIGHT + 14 * 15,
    HEADER_HEIGHT + 13 * 15 + 12,
  ]);
});

test.each([[6], [8], [12]])("numbers of %i characters fit into their cells", (characters) => {
  for (const columns of [3, 9, 10, 14, 128])
    for (const width of [700, 1000]) {
      const sizes = fitGrid([14, columns], width, 260, 25, 12, characters);
      const size = fontSize(sizes, characters);
      expect(0.6 * size * characters).toBeLessThan(sizes.cellWidth - 2); // JetBrains Mono is 0.6 em wide
      expect(size).toBeGreaterThan(8); // pixels
    }
});

test("a cell at the edge counts only if it is whole", () => {
  expect(wholeSpan(0, 520, 50, 128)).toEqual([0, 10]);
  expect(wholeSpan(20, 520, 50, 128)).toEqual([1, 10]);
  expect(wholeSpan(1, 499, 50, 128)).toEqual([0, 10]); // the gap between two cells may be cut
  expect(wholeSpan(6000, 520, 50, 128)).toEqual([120, 128]);
  expect(partialSpan(20, 520, 50, 128)).toEqual([0, 12]);
});
