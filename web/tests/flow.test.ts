import { expect, test } from "vitest";
import { hit, layOut, rowY, TOP } from "../src/flow";

test("columns follow each other without touching, within the width", () => {
  for (const width of [320, 900, 1600]) {
    const { columns } = layOut(width, 470, 12, 0);
    const all = Object.values(columns).filter((column) => column.width > 0);
    all.slice(1).forEach((column, i) => expect(column.x).toBeGreaterThanOrEqual(all[i]!.x + all[i]!.width));
    expect(all.length).toBe(width === 320 ? 4 : 14);
    expect(all.at(-1)!.x + all.at(-1)!.width).toBeLessThanOrEqual(width);
  }
});

test("rows shrink until they can be read no more, then some of them are shown", () => {
  expect(layOut(1000, 470, 3, 0)).toMatchObject({ count: 3, rowHeight: 26, first: 0 });
  expect(layOut(1000, 470, 30, 0).rowHeight).toBeCloseTo((470 - TOP) / 30);
  const long = layOut(1000, 470, 1024, 1000);
  expect(long.count).toBe(38);
  expect(long.first).toBe(1024 - 38);
});

test("what is pointed at is what was drawn there", () => {
  const layout = layOut(1200, 470, 12, 0);
  const { attention, blocks, norm } = layout.columns;
  const y = rowY(layout, 7);
  expect(hit(layout, 30, norm.x + norm.width / 4, y)).toEqual({
    column: "norm",
    row: 7,
    looked: null,
    block: null,
    across: expect.closeTo(0.25),
  });
  const cell = Math.min(attention.width / 12, layout.rowHeight);
  expect(hit(layout, 30, attention.x + 3.5 * cell, y)).toMatchObject({
    column: "attention",
    row: 7,
    looked: 3,
  });
  expect(hit(layout, 30, blocks.x + (13.5 / 30) * blocks.width, y)).toMatchObject({ block: 13 });
  expect(hit(layout, 30, norm.x + 1, 3)).toBeNull();
});
