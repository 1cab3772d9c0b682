import { expect, test } from "vitest";
import { fitLensColumns } from "../../src/layout/lensColumns";

test("a whole number of columns is visible", () => {
  for (const room of [130, 251, 316, 700, 1240]) {
    const { width, shown } = fitLensColumns(room, 40);
    expect(width).toBeGreaterThanOrEqual(60); // pixels
    expect(shown * width).toBeLessThanOrEqual(room);
    expect((shown + 1) * 60).toBeGreaterThan(room);
  }
});

test("few columns are not stretched, and all of them are visible", () => {
  expect(fitLensColumns(1240, 3)).toEqual({ width: 86, shown: 3 });
  expect(fitLensColumns(1240, 16)).toEqual({ width: 77, shown: 16 });
  expect(fitLensColumns(1243, 23)).toEqual({ width: 54, shown: 23 });
});

test("there is one column before the view is laid out", () => {
  expect(fitLensColumns(-74, 9)).toEqual({ width: 54, shown: 1 });
});
