import { expect, test } from "vitest";
import { makeHeadings, headingWidths } from "../../src/layout/headings";
import { hitTest, layOutFlow, paginateColumns, rowY, TOP } from "../../src/layout/columns";
import { de } from "../../src/messages/de";
import { en } from "../../src/messages/en";

const ROOMS = [en, de].map((words) => headingWidths(makeHeadings(words, 11, { n_block: 48 })));

test("lays out columns side by side within the width, each at least as wide as its heading", () => {
  for (const room of ROOMS) {
    for (let width = 330; width < 2000; width += 7) {
      const pages = paginateColumns(width, room);
      pages.forEach((names, page) => {
        const { columns } = layOutFlow(width, 470, 12, 0, room, page);
        const all = Object.values(columns).filter((column) => column.width > 0);
        expect(all.map(({ name }) => name)).toEqual(["tokens", ...names]);
        all.slice(1).forEach((column, i) => {
          const before = all[i]!;
          expect(column.x).toBeGreaterThanOrEqual(before.x + before.width);
          expect(column.x).toBeGreaterThanOrEqual(before.x + (room[before.name] ?? 0) - 1e-6);
        });
        const last = all.at(-1)!;
        expect(last.x + Math.max(last.width, room[last.name] ?? 0)).toBeLessThanOrEqual(width + 1e-6);
      });
    }
  }
});

test("moves columns that do not fit to another page", () => {
  const [room] = ROOMS;
  expect(paginateColumns(1000, room!).length).toBe(1);
  expect(paginateColumns(336, room!)).toEqual([
    ["embedding", "norm", "query", "key", "value"],
    ["lane", "attention"],
    ["add", "norm2", "feedforward", "add2"],
    ["blocks", "final"],
  ]);
  for (const width of [200, 500, 700]) expect(paginateColumns(width, room!).flat().length).toBe(13);
});

test("shrinks rows to a minimum, then shows only some of them", () => {
  expect(layOutFlow(1000, 470, 3, 0)).toMatchObject({ count: 3, rowHeight: 26, first: 0 });
  expect(layOutFlow(1000, 470, 30, 0).rowHeight).toBeCloseTo((470 - TOP) / 30);
  const long = layOutFlow(1000, 470, 1024, 1000);
  expect(long.count).toBe(42);
  expect(long.first).toBe(1024 - 42);
});

test("finds the column and row at a point", () => {
  const layout = layOutFlow(1200, 470, 12, 0);
  const { attention, blocks, norm } = layout.columns;
  const y = rowY(layout, 7);
  expect(hitTest(layout, 30, norm.x + norm.width / 4, y)).toEqual({
    column: "norm",
    row: 7,
    attended: null,
    block: null,
    across: expect.closeTo(0.25),
  });
  const cell = Math.min(attention.width / 12, layout.rowHeight);
  expect(hitTest(layout, 30, attention.x + 3.5 * cell, y)).toMatchObject({
    column: "attention",
    row: 7,
    attended: 3,
  });
  expect(hitTest(layout, 30, blocks.x + (13.5 / 30) * blocks.width, y)).toMatchObject({ block: 13 });
  expect(hitTest(layout, 30, norm.x + 1, 3)).toBeNull();
});

test("all columns fit side by side on a screen of 1280 pixels, in every language", () => {
  const besidePrediction = 950;
  for (const room of ROOMS) expect(paginateColumns(besidePrediction, room)).toHaveLength(1);
});
