import { expect, test } from "vitest";
import { divideScreen, MOST_TOKENS } from "../../src/layout/screen";

test("rows have their full height where there is room", () => {
  expect(divideScreen(undefined, 16)).toEqual({ flow: 26, matrix: 25 });
  expect(divideScreen(1000, 5)).toEqual({ flow: 26, matrix: 25 });
});

test.each([[713], [845], [1025]])("rows of 16 tokens share a screen of %i pixels", (height) => {
  const { flow, matrix } = divideScreen(height, 16);
  expect(flow).toBeGreaterThanOrEqual(11);
  expect(matrix).toBeGreaterThanOrEqual(15);
  expect(16 * (flow + matrix)).toBeLessThanOrEqual(height);
});

test("rows of a longer text are as high as those of the longest that fits", () => {
  expect(divideScreen(713, 200)).toEqual(divideScreen(713, MOST_TOKENS));
});

test("rows stay legible on a small screen", () => {
  expect(divideScreen(300, 16)).toEqual({ flow: 11, matrix: 15 });
});
