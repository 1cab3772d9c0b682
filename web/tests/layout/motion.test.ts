import { expect, test } from "vitest";
import type { Piece, Scene } from "../../src/layout/pieces";
import type { GridPlaces, Rect } from "../../src/layout/places";
import { motionSites, planMotion } from "../../src/layout/motion";
import { derive, deriveWeighed, visiblePositions, WEIGHED } from "../../src/model/derivation";
import { Matrix, weigh } from "../../src/model/matrix";
import { parseSite, siteShape } from "../../src/model/sites";
import { PARTS, stepsOf } from "../../src/model/steps";
import { CONFIG } from "../config";

const IDS = [3, 1, 4, 1, 5];
const [ROW, BLOCK, HEAD] = [3, 1, 2];
const at = (part: string) => `block.${BLOCK}.head.${HEAD}.${part}`;

/** A matrix whose numbers encode their positions. Weights are shares. */
function read(name: string): Matrix {
  const { part } = parseSite(name);
  if (part === WEIGHED) return weigh(read(at("weights")), read(at("value")), ROW);
  const [rows, columns] = siteShape(CONFIG, IDS.length, name);
  const seed = [...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  const values = Float32Array.from({ length: rows * columns }, (_, i) => {
    const [row, column] = [Math.floor(i / columns), i % columns];
    if (part === "weights") return column <= row ? 1 / (row + 1) : 0;
    return seed + row + column / 100;
  });
  return new Matrix(values, rows, columns);
}

/** A grid with the first columns of a site on the screen. */
function gridOf(site: string, visible = 6): GridPlaces {
  const [rows, columns] = siteShape(CONFIG, IDS.length, site);
  const count = Math.min(columns, visible);
  const indices = (n: number) => Array.from({ length: n }, (_, i) => i);
  return {
    site,
    columns: new Map(indices(count).map((i) => [i, { x: 500 + 50 * i, width: 48 }])),
    rows: new Map(indices(rows).map((i) => [i, { y: 400 + 20 * i, height: 18 }])),
    headings: { y: 370, height: 20 },
    end: 500 + 50 * visible,
  };
}

const COLUMNS = ["tokens", "norm", "query", "key", "attention", "add", "norm2", "feedforward", "final"];
const flow: Scene["flow"] = (column, row, attended = 0) => ({
  x: 40 * COLUMNS.indexOf(column) + 5 * attended,
  y: 50 + 15 * row,
  width: 30,
  height: 12,
});

function plan(site: string, changes: Partial<Scene> = {}): Piece[] {
  const derivation =
    parseSite(site).part === WEIGHED
      ? deriveWeighed(BLOCK, HEAD, ROW, 0, 0)
      : derive(CONFIG, IDS, { name: site, row: ROW, column: 0 });
  return planMotion({
    grid: gridOf(site),
    before: null,
    derivation,
    row: ROW,
    visible: (row) => visiblePositions(CONFIG, BLOCK, row),
    read,
    nameOf: (name) => parseSite(name).part,
    flow,
    ...changes,
  });
}

const first = ({ frames }: Piece): Rect => frames[0]!.rect;
const last = ({ frames }: Piece): Rect => frames.at(-1)!.rect;
const cellOf = (row: number, column: number): Rect => ({
  x: 500 + 50 * column,
  y: 400 + 20 * row,
  width: 48,
  height: 18,
});
const sitesOf = (part: (typeof PARTS)[number]) =>
  stepsOf(part, CONFIG, BLOCK, HEAD).flatMap(({ sites }) => sites);

test("frames are in order, from the start to the end, and only numbers of the step's sites move", () => {
  for (const site of PARTS.flatMap(sitesOf)) {
    for (const changes of [{}, { flow: () => null }]) {
      for (const piece of plan(site, changes)) {
        const times = piece.frames.map(({ at }) => at);
        expect(times).toEqual([...times].sort((a, b) => a - b));
        expect([times[0], times.at(-1)]).toEqual([0, 1]);
        expect(piece.place.width).toBeGreaterThan(0);
        for (const { opacity } of piece.frames) expect(opacity >= 0 && opacity <= 1).toBe(true);
        const numbers = read(piece.site).values;
        for (const value of piece.values) expect(numbers).toContain(value);
      }
    }
  }
});

test("every step of a head moves something", () => {
  for (const site of sitesOf("head")) expect(plan(site).length, site).toBeGreaterThan(0);
});

test("names the sites that must be loaded, without weights", () => {
  const scores = derive(CONFIG, IDS, { name: at("scores"), row: ROW, column: 0 });
  expect(motionSites(at("scores"), scores)).toEqual([at("query"), at("key"), at("scores")]);
  const query = derive(CONFIG, IDS, { name: at("query_raw"), row: ROW, column: 0 });
  expect(motionSites(at("query_raw"), query)).toEqual([`block.${BLOCK}.normed`, at("query_raw")]);
});

test("projects the normalized row from the flow to the row of the query", () => {
  const [piece, ...others] = plan(at("query_raw"));
  expect(others).toEqual([]);
  expect(piece!.site).toBe(`block.${BLOCK}.normed`);
  expect(first(piece!)).toEqual(flow("norm", ROW));
  expect(last(piece!)).toEqual({ x: 500, y: 460, width: 98, height: 18 });
  expect(piece!.values).toEqual([...read(piece!.site).row(ROW).slice(0, 2)]);
});

test("scores fall from the keys into their cells, and the query passes each key", () => {
  const pieces = plan(at("scores"));
  const scores = pieces.filter(({ site }) => site === at("scores"));
  scores.forEach((piece, key) => {
    expect(piece.values).toEqual([read(at("scores")).at(ROW, key)]);
    expect(last(piece)).toEqual(cellOf(ROW, key));
    expect(first(piece).y + first(piece).height / 2).toBe(flow("key", key)!.y + 6);
  });
  expect(scores.length).toBe(IDS.length);
  const query = pieces.find(({ site }) => site === at("query"))!;
  const stops = query.frames.map(({ rect }) => rect.y);
  for (const key of IDS.keys()) expect(stops).toContain(flow("query", key)!.y);
  expect(pieces.filter(({ kind }) => kind === "frame").length).toBe(1);
});

test("without the flow, the query passes the headings of the matrix", () => {
  const pieces = plan(at("scores"), { flow: () => null });
  const scores = pieces.filter(({ site }) => site === at("scores"));
  expect(scores.map((piece) => first(piece).y)).toEqual(IDS.map(() => 371));
  expect(pieces.find(({ site }) => site === at("query"))!.place.y).toBe(350);
});

test("scores shrink by the square root of d_k", () => {
  const numbers = plan(at("scaled")).filter(({ kind }) => kind === "picture");
  expect(numbers.length).toBe(IDS.length);
  for (const piece of numbers) {
    expect(piece.site).toBe(at("scores"));
    expect(last(piece).width).toBeCloseTo(48 / Math.sqrt(CONFIG.d_k));
  }
});

test("the mask erases the future of every row, and only that", () => {
  const pieces = plan(at("masked"));
  expect(pieces.map(({ values }) => values.length)).toEqual([4, 3, 2, 1]);
  pieces.forEach((piece, row) => {
    expect(first(piece).x).toBe(cellOf(row, row + 1).x);
    expect(piece.frames.at(-1)!.erased).toBe(1);
  });
});

test("the shares of the softmax fill one bar without gaps", () => {
  const pieces = plan(at("weights"));
  const shares = pieces.filter(({ site, kind }) => site === at("weights") && kind === "share");
  expect(shares.length).toBe(ROW + 1); // the rest is masked
  const bar = pieces.find(({ kind }) => kind === "frame")!;
  let x = bar.place.x;
  for (const [column, piece] of shares.entries()) {
    const { rect } = piece.frames[1]!;
    expect(rect.x).toBeCloseTo(x, 4);
    x += rect.width;
    expect(last(piece)).toEqual(cellOf(ROW, column));
  }
  expect(x).toBeCloseTo(bar.place.x + bar.place.width, 4);
});

test("weights go from their row to the values that they multiply", () => {
  const before = gridOf(at("weights"));
  const pieces = plan(at(WEIGHED), { before });
  const factors = pieces.filter(({ site }) => site === at("weights"));
  factors.forEach((piece, token) => {
    expect(first(piece)).toEqual(cellOf(ROW, token));
    expect(last(piece).y).toBe(400 + 20 * token);
  });
  expect(factors.length).toBe(ROW + 1);
  const fromFlow = plan(at(WEIGHED)).filter(({ site }) => site === at("weights"));
  expect(fromFlow.map(first)).toEqual(factors.map((_, token) => flow("attention", ROW, token)));
});

test("weighted rows fall into the row of the sum", () => {
  const pieces = plan(at("mixed"));
  expect(pieces.map((piece) => first(piece).y)).toEqual([460, 440, 420, 400]); // the nearest first
  for (const piece of pieces) expect([piece.site, last(piece).y]).toEqual([at(WEIGHED), 460]);
});

test("the output goes to the residual stream, if the flow shows it", () => {
  expect(last(plan(at("output")).at(-1)!)).toEqual(flow("add", ROW));
  expect(plan(at("output"), { flow: () => null }).map(({ site }) => site)).toEqual([at("mixed")]);
});

test("rows that are added start apart within the matrix and end in one", () => {
  const pieces = plan(`block.${BLOCK}.middle`);
  expect(pieces.map(({ label }) => label)).toEqual(["input", "attention"]);
  expect(new Set(pieces.map((piece) => first(piece).y)).size).toBe(2);
  for (const piece of pieces) expect(last(piece)).toEqual({ x: 500, y: 460, width: 298, height: 18 });
  for (const piece of plan(`block.${BLOCK}.middle`, { row: 4 }))
    expect(first(piece).y).toBeLessThanOrEqual(480);
});

test("a mean collapses its row", () => {
  const [piece] = plan(`block.${BLOCK}.normed.scale`);
  expect(piece!.values.length).toBe(6);
  expect(last(piece!)).toEqual(cellOf(ROW, 0));
});

test("nothing moves to a row that is not on the screen", () => {
  for (const site of PARTS.flatMap(sitesOf)) {
    if (site === at("masked") || site === at(WEIGHED)) continue; // all rows change
    const grid = gridOf(site);
    grid.rows.delete(ROW);
    expect(plan(site, { grid }), site).toEqual([]);
  }
});
