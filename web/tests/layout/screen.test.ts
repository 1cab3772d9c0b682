import { expect, test } from "vitest";
import { divideScreen, MOST_TOKENS } from "../../src/layout/screen";

test("rows have their full height if there is room", () => {
  expect(divideScreen(undefined, 16)).toEqual({ flow: 26, matrix: 25, left: 400 });
  expect(divideScreen(1000, 5)).toMatchObject({ flow: 26, matrix: 25 });
});

test.each([[713], [845], [1025]])("rows of 16 tokens share a screen of %i pixels", (height) => {
  const { flow, matrix } = divideScreen(height, 16);
  expect(flow).toBeGreaterThanOrEqual(11);
  expect(matrix).toBeGreaterThanOrEqual(15);
  expect(16 * (flow + matrix)).toBeLessThanOrEqual(height);
});

test.each([1, 5, 14, 16])("what is beside the matrix of %i tokens fits on the screen too", (tokens) => {
  const { flow, matrix, left } = divideScreen(713, tokens);
  expect(left).toBeGreaterThanOrEqual(tokens * matrix);
  expect(left + tokens * flow + 267).toBeLessThanOrEqual(713);
});

test("rows of a longer text are as tall as those of the longest text that fits", () => {
  expect(divideScreen(713, 200)).toEqual(divideScreen(713, MOST_TOKENS));
});

test("rows stay legible on a small screen", () => {
  expect(divideScreen(300, 16)).toMatchObject({ flow: 10, matrix: 15 });
});
