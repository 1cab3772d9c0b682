import { expect, test } from "vitest";
import { abbreviate, labeledIndices, pushApart, spreadOut } from "../../src/drawing/labels";

const measure = (text: string) => 5 * [...text].length;

test("abbreviates only what is too long, and never splits a character", () => {
  expect(abbreviate("tired", 25, measure)).toBe("tired");
  expect(abbreviate("because", 25, measure)).toBe("beca…");
  expect(abbreviate("🦆🦆🦆", 10, measure)).toBe("🦆…");
  expect(abbreviate("because", 1, measure)).toBe("…");
  expect(abbreviate("", 0, measure)).toBe("");
});

test("names are never closer than the spacing, and all are shown if they fit", () => {
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

test("positions on a line keep their order and are moved apart within their limits", () => {
  expect(spreadOut([50, 10, 52], 10, 0, 100)).toEqual([50, 10, 60]);
  expect(spreadOut([98, 99, 97], 10, 0, 100)).toEqual([90, 100, 80]);
  expect(spreadOut([], 10, 0, 100)).toEqual([]);
});

test("points are pushed apart, even if all are in one place or a corner", () => {
  const apart = [
    { x: 20, y: 20 },
    { x: 80, y: 80 },
  ];
  expect(pushApart(apart, 18, 0, 300)).toEqual(apart);
  for (const x of [0, 150]) {
    const pushed = pushApart(
      Array.from({ length: 6 }, () => ({ x, y: x })),
      18,
      0,
      300,
    );
    pushed.forEach((one, i) =>
      pushed.slice(i + 1).forEach((other) => {
        expect(Math.hypot(one.x - other.x, one.y - other.y)).toBeGreaterThan(17);
      }),
    );
    for (const { x, y } of pushed) expect(Math.min(x, y, 300 - x, 300 - y)).toBeGreaterThanOrEqual(0);
  }
});
