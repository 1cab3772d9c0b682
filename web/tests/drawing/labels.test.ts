import { expect, test } from "vitest";
import { abbreviate, labeledIndices } from "../../src/drawing/labels";

const measure = (text: string) => 5 * [...text].length;

test("abbreviates only what is too long, and never splits a character", () => {
  expect(abbreviate("tired", 25, measure)).toBe("tired");
  expect(abbreviate("because", 25, measure)).toBe("beca…");
  expect(abbreviate("🦆🦆🦆", 10, measure)).toBe("🦆…");
  expect(abbreviate("because", 1, measure)).toBe("…");
  expect(abbreviate("", 0, measure)).toBe("");
});

test("names are never closer than the spacing, and all are there if they fit", () => {
  expect(labeledIndices(0, 12, 30, 14)).toEqual(Array.from({ length: 12 }, (_, i) => i));
  for (const size of [0.3, 1, 2.7, 6, 12.9, 14, 40]) {
    for (const first of [0, 3.4, 17]) {
      for (const keep of [[], [5], [20, 21], [19, 400]]) {
        const all = labeledIndices(first, 30, size, 14, keep);
        all
          .slice(1)
          .forEach((index, i) => expect((index - all[i]!) * size).toBeGreaterThanOrEqual(14 - 1e-6));
        for (const index of all) {
          expect(index).toBeGreaterThanOrEqual(Math.floor(first));
          expect(index).toBeLessThan(first + 30);
        }
        if (keep[0] !== undefined && keep[0] >= first) expect(all).toContain(keep[0]);
      }
    }
  }
});
