import { expect, test } from "vitest";
import { blockGrid, patternAt, patternCellAt, patternPosition, sortedGrid } from "../../src/layout/headGrid";

test("a small model has one row per block", () => {
  const grid = blockGrid(4, 4, 1240, 560)!;
  expect(patternPosition(grid, 0)).toEqual([58, 18]);
  expect(patternPosition(grid, 15)[0]).toBe(patternPosition(grid, 3)[0]);
  expect(patternPosition(grid, 15)[1] + grid.side).toBeLessThanOrEqual(560);
});

test("many blocks continue in bands side by side, all on the screen", () => {
  const grid = blockGrid(30, 9, 1240, 560)!;
  expect(grid.side).toBeGreaterThan(25);
  for (let number = 0; number < 270; number++) {
    const [x, y] = patternPosition(grid, number);
    expect(x + grid.width).toBeLessThanOrEqual(1240);
    expect(y + grid.side).toBeLessThanOrEqual(560);
    expect(patternAt(grid, x + 1, y + 1, 270)).toBe(number);
    expect(patternAt(grid, x + grid.side - 1, y + grid.side - 1, 270)).toBe(number);
  }
  expect(patternAt(grid, 5, 30, 270)).toBeNull(); // the names of the blocks
  expect(patternAt(grid, 60, 5, 270)).toBeNull(); // the names of the heads
});

test("the patterns of a small model use the width of the screen", () => {
  const grid = blockGrid(4, 4, 1318, 552)!;
  expect(grid.width).toBe(Math.floor(1.8 * grid.side));
  const narrow = blockGrid(4, 4, 700, 552)!;
  const [x] = patternPosition(narrow, 3);
  expect(x + narrow.width).toBeLessThanOrEqual(700);
  expect(narrow.width).toBeGreaterThanOrEqual(narrow.side);
});

test("heads that do not fit side by side are not laid out by block", () => {
  expect(blockGrid(12, 12, 300, 500)).toBeNull();
});

test("sorted patterns fill the width, as large as the height allows", () => {
  const grid = sortedGrid(16, 1240, 560);
  expect(patternPosition(grid, grid.columns)).toEqual([0, grid.side + grid.caption + 6]);
  expect(grid.rows * (grid.side + grid.caption + 6)).toBeLessThanOrEqual(560);
  expect(patternAt(grid, 1, 1, 16)).toBe(0);
  expect(patternAt(grid, 1239, 559, 16)).toBeNull();
});

test("each of many sorted patterns has room for its score", () => {
  const grid = sortedGrid(270, 1310, 380);
  expect(grid.caption).toBeGreaterThan(0);
  expect(grid.rows * (grid.side + grid.caption)).toBeLessThanOrEqual(380);
});

test("finds the cell of a pattern at a point", () => {
  const grid = blockGrid(2, 2, 1240, 560)!;
  const [x, y] = patternPosition(grid, 3);
  const [width, height] = [(grid.width - 2) / 5, (grid.side - 2) / 5];
  const cellAt = (row: number, column: number) =>
    patternCellAt(grid, 3, x + 1 + (column + 0.5) * width, y + 1 + (row + 0.5) * height, 5);
  expect(cellAt(0, 0)).toEqual([0, 0]);
  expect(cellAt(4, 1)).toEqual([4, 1]);
  expect(cellAt(5, 1)).toBeNull();
  expect(patternCellAt(grid, 3, x, y, 5)).toBeNull(); // the frame
});
