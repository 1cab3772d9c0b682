import { expect, test } from "vitest";
import { channels, PALETTES } from "../../src/drawing/colors";
import { type FlowData, paintFlow, STRIPES } from "../../src/drawing/flow";
import type { Pen } from "../../src/drawing/pen";
import { attentionCell, hitTest, type Layout, layOutFlow, rowY } from "../../src/layout/columns";
import { Matrix } from "../../src/model/matrix";

type Call = [string, ...unknown[]];

function paint(layout: Layout, change: Partial<FlowData> = {}): Call[] {
  const { length } = layout;
  const weights = new Float32Array(length * length);
  for (let i = 0; i < length; i++) weights.fill(1 / (i + 1), i * length, i * length + i + 1);
  const data: FlowData = {
    tokens: Array.from({ length }, (_, i) => `t${i}`),
    row: length - 1,
    attended: null,
    block: 0,
    part: "head",
    weights: new Matrix(weights, length, length),
    streams: [],
    lens: [],
    sites: {},
    isSilent: false,
    highlighted: [],
    visible: (row) => [0, row + 1],
    ...change,
  };
  const calls: Call[] = [];
  const pen = new Proxy({} as Pen, {
    get:
      (_, method) =>
      (...values: unknown[]) =>
        calls.push([String(method), ...values]),
  });
  paintFlow(pen, layout, data, "light");
  return calls;
}

test("frames exactly the attention weight under the pointer, at every size", () => {
  for (const width of [1000, 1366, 1920]) {
    for (const length of [3, 12, 23, 38]) {
      const layout = layOutFlow(width, 470, length, 0);
      const cell = attentionCell(layout);
      for (const [row, column] of [
        [0, 0],
        [length - 1, 1],
        [length - 2, length - 1],
      ] as const) {
        const x = layout.columns.attention.x + (column + 0.5) * cell.width;
        const pointed = hitTest(layout, 1, x, rowY(layout, row));
        expect(pointed).toMatchObject({ row, attended: column });
        const frames = paint(layout, { pointed, attended: 0 }).filter(([method]) => method === "frame");
        expect(frames.length).toBe(1);
        const [left, top, frameWidth, height] = frames[0]!.slice(1) as [number, number, number, number];
        expect(Math.abs(left + frameWidth / 2 - x)).toBeLessThan(1);
        expect(top + height / 2).toBeCloseTo(rowY(layout, row));
        expect(frameWidth).toBeLessThan(cell.width + 3);
      }
    }
  }
});

test("shows the colors of both signs under every column of signed numbers", () => {
  const layout = layOutFlow(1200, 470, 6, 0);
  const bottom = layout.top + layout.count * layout.rowHeight;
  const rects = paint(layout).filter(([method, , y]) => method === "rect" && (y as number) > bottom);
  for (const [name, role] of STRIPES) {
    const { x, width } = layout.columns[name];
    const strip = rects.filter(([, left]) => (left as number) >= x && (left as number) < x + width);
    const { positive, negative } = PALETTES.light.roles[role];
    const ends = [strip[0]!, strip.at(-1)!].map((rect) => channels(rect[5] as string));
    expect(ends).toEqual([channels(negative), channels(positive)]);
    for (const [, , y, , height] of strip as [string, number, number, number, number][])
      expect(y + height).toBeLessThan(layout.height);
  }
});

test("hatches exactly the masked cells", () => {
  const calls = paint(layOutFlow(1200, 470, 6, 0));
  expect(calls.filter(([method]) => method === "hatch").length).toBe((6 * 5) / 2);
  const open = paint(layOutFlow(1200, 470, 6, 0), { visible: () => [0, Infinity] });
  expect(open.some(([method]) => method === "hatch")).toBe(false);
});

test("names every column but the last beside the diagonal if there is room", () => {
  const named = (length: number, height = 470) =>
    paint(layOutFlow(1366, height, length, 0)).filter(([method, , , , style]) => {
      return method === "text" && (style as { anchor?: string; size: number }).anchor !== "end";
    });
  expect(named(12).length).toBe(12 + 11); // row numbers and names
  expect(named(38).length).toBeGreaterThan(38 + 30); // no names where the triangle is too narrow
  expect(named(38, 430).length).toBeGreaterThan(38 + 30); // also beside the lowest rows
});

test("draws what each block added: half a cell if it is as long as the input", () => {
  const layout = layOutFlow(1366, 470, 2, 0);
  const streams = [
    new Matrix(Float32Array.of(2, 4, 2, 12, 6, 4), 3, 2), // norms of the input, of attention and of feed-forward
    new Matrix(Float32Array.of(1, 1, 0, 1, 1, 0), 3, 2),
  ];
  const { x, width } = layout.columns.blocks;
  const bars = (block: number) =>
    paint(layout, { streams, lens: ["one", "two"] })
      .filter(
        ([method, left, , , height]) => method === "rect" && left === x + (block * width) / 2 && height === 6,
      )
      .map(([, , , length]) => (length as number) / (width / 2 - 4));
  expect(bars(0)).toEqual([1 / 2, 3 / 4, 3 / 4, 1 / 2]); // by row: attention, feed-forward
  expect(bars(1)).toEqual([0, 1 / 2, 1 / 2, 0]);
});

test("writes what the logit lens reads above blocks that are wide enough", () => {
  const layout = layOutFlow(1366, 470, 2, 0);
  const stream = new Matrix(Float32Array.of(1, 1, 1, 1, 1, 1), 3, 2);
  const texts = (blocks: number) =>
    paint(layout, { streams: Array<Matrix>(blocks).fill(stream), lens: Array<string>(blocks).fill(" in") })
      .filter(([method]) => method === "text")
      .map(([, , , text]) => text);
  expect(texts(2).filter((text) => text === "␣in")).toHaveLength(2);
  expect(texts(30)).not.toContain("␣in");
});

test("in narrow blocks, a word of the logit lens loses its space sign before any letters", () => {
  const layout = layOutFlow(1366, 470, 2, 0);
  const stream = new Matrix(Float32Array.of(1, 1, 1, 1, 1, 1), 3, 2);
  const count = Math.floor(layout.columns.blocks.width / 24); // cells as narrow as on a small screen
  const texts = paint(layout, { streams: Array<Matrix>(count).fill(stream), lens: [" it", " was", " "] })
    .filter(([method]) => method === "text")
    .map(([, , , text]) => text);
  expect(texts).toEqual(expect.arrayContaining(["␣it", "was", "␣"]));
});
