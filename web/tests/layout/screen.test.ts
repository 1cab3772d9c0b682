import { expect, test } from "vitest";
import { divideScreen, fitRows, MOST_TOKENS } from "../../src/layout/screen";

const AROUND = 279; // height of everything around the rows, in pixels

test("rows have their full height if there is room", () => {
  expect(divideScreen(undefined, 16)).toEqual({ flow: 26, matrix: 25 });
  expect(divideScreen(1000, 5)).toMatchObject({ flow: 26, matrix: 25 });
});

test.each([[713], [845], [1025]])("rows of 16 tokens share a screen of %i pixels", (height) => {
  const { flow, matrix } = divideScreen(height, 16);
  expect(flow).toBeGreaterThanOrEqual(11);
  expect(matrix).toBeGreaterThanOrEqual(15);
  expect(16 * (flow + matrix) + AROUND).toBeLessThanOrEqual(height);
});

test("16 tokens and the tabs of a step fit on a laptop's screen", () => {
  const { flow, matrix } = divideScreen(713 - 28, 16);
  expect(16 * (flow + matrix) + AROUND).toBeLessThanOrEqual(713 - 28);
});

test("rows of a longer text are as tall as those of the longest text that fits", () => {
  expect(divideScreen(713, 200)).toEqual(divideScreen(713, MOST_TOKENS));
});

test("rows stay legible on a small screen", () => {
  expect(divideScreen(300, 16)).toMatchObject({ flow: 10, matrix: 15 });
});

test("rows of a matrix share its height, as long as they are legible", () => {
  expect(fitRows(200, 10)).toBe(20);
  expect(fitRows(205, 10)).toBe(20); // whole pixels
  expect(fitRows(1000, 10)).toBe(25);
  expect(fitRows(10, 10)).toBe(15);
  expect(fitRows(320, 100)).toBe(20); // 16 rows at a time
  expect(fitRows(320, 0)).toBe(25);
});
