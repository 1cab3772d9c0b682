/** Where everything in the flow stands. A token is a row, all the way; what does not fit beside it is a page on. */

import type { PartName, StepName } from "../model/steps";

export type ColumnName =
  | "tokens"
  | "embedding"
  | "norm"
  | "query"
  | "key"
  | "value"
  | "lane"
  | "attention"
  | "add"
  | "norm2"
  | "feedforward"
  | "add2"
  | "blocks"
  | "final";

export interface Column {
  name: ColumnName;
  x: number;
  width: number; // 0 on another page
}

export interface Layout {
  width: number;
  height: number;
  top: number; // where the rows begin
  rowHeight: number;
  first: number; // the first row on screen
  count: number; // rows on screen
  length: number; // of all tokens
  columns: Record<ColumnName, Column>;
  end: number; // of the streams
  block: { x: number; width: number } | null; // what belongs to the block
}

// Shares of the width, and of a gap after each.
const SHARES: Record<ColumnName, [number, number]> = {
  tokens: [1.55, 0.14],
  embedding: [1.05, 0.42],
  norm: [0.42, 0.3],
  query: [0.58, 0.1],
  key: [0.58, 0.1],
  value: [0.58, 0.04],
  lane: [0.75, 0.06],
  attention: [3.0, 0.16],
  add: [0.26, 0.18],
  norm2: [0.42, 0.2],
  feedforward: [1.25, 0.16],
  add2: [0.26, 0.4],
  blocks: [1.9, 0.3],
  final: [0.42, 0.1],
};

// What stays together where not all of it fits.
const GROUPS: ColumnName[][] = [
  ["embedding"],
  ["norm", "query", "key", "value"],
  ["lane", "attention"],
  ["add", "norm2", "feedforward", "add2"],
  ["blocks", "final"],
];
const OF_A_BLOCK = new Set<ColumnName>(GROUPS.slice(1, 4).flat());

/** The room that a column takes at least, its heading and the gap after it counted in. */
export type MinWidths = Partial<Record<ColumnName, number>>;
const LEAST: MinWidths = { tokens: 74, lane: 34, add: 20, add2: 30 };
const LEAST_DRAWN = 18;

/** Tokens: of longer texts only the rows near the screen are read. */
export const LONG_TEXT = 64;

export const TOP = 46;
const TALLEST = 26;
const SHORTEST = 11;

/** How many rows are on screen at once. */
export function rowsThatFit(height: number, length: number): number {
  return Math.min(length, Math.max(1, Math.floor((height - TOP) / SHORTEST)));
}

/** The columns beside the tokens, page by page: as many groups together as the width contains. */
export function paginateColumns(width: number, room: MinWidths): ColumnName[][] {
  const pages: ColumnName[][] = [];
  for (const group of GROUPS) {
    const page = pages.at(-1);
    if (page && leastOf(["tokens", ...page, ...group], room) <= width) page.push(...group);
    else pages.push([...group]);
  }
  return pages;
}

function least(name: ColumnName, room: MinWidths): number {
  return Math.max(LEAST[name] ?? LEAST_DRAWN, room[name] ?? 0);
}

function leastOf(names: ColumnName[], room: MinWidths): number {
  return names.reduce((sum, name) => sum + least(name, room), 0);
}

/** Each has its share, or what it takes at least: the others give way. */
function divide(names: ColumnName[], width: number, room: MinWidths): Map<ColumnName, number> {
  const shareOf = (name: ColumnName) => SHARES[name][0] + SHARES[name][1];
  const tight = new Set<ColumnName>();
  for (;;) {
    const loose = names.filter((name) => !tight.has(name));
    const left = width - leastOf([...tight], room);
    const unit = left / loose.reduce((sum, name) => sum + shareOf(name), 0);
    const fails = loose.filter((name) => shareOf(name) * unit < least(name, room));
    if (fails.length === 0 || fails.length === loose.length) {
      return new Map(names.map((name) => [name, tight.has(name) ? least(name, room) : shareOf(name) * unit]));
    }
    for (const name of fails) tight.add(name);
  }
}

export function layOutFlow(
  width: number,
  most: number,
  length: number,
  first: number,
  room: MinWidths = {},
  page = 0,
): Layout {
  const count = rowsThatFit(most, length);
  const rowHeight = Math.min(TALLEST, (most - TOP) / Math.max(1, count));
  const pages = paginateColumns(width, room);
  const shown = pages[Math.min(page, pages.length - 1)]!;
  const columns = {} as Record<ColumnName, Column>;
  for (const name of Object.keys(SHARES) as ColumnName[]) columns[name] = { name, x: 0, width: 0 };
  let x = 0;
  for (const [name, taken] of divide(["tokens", ...shown], width, room)) {
    const [share, gap] = SHARES[name];
    columns[name] = { name, x, width: (taken * share) / (share + gap) };
    x += taken;
  }
  const own = shown.filter((name) => OF_A_BLOCK.has(name)).map((name) => columns[name]);
  const start = own[0]?.x ?? 0;
  return {
    width,
    height: TOP + count * rowHeight + 10,
    top: TOP,
    rowHeight,
    first: Math.max(0, Math.min(first, length - count)),
    count,
    length,
    columns,
    end: columns.final.width > 0 ? columns.final.x + columns.final.width + 4 : width,
    block: own.length > 0 ? { x: start, width: own.at(-1)!.x + own.at(-1)!.width - start } : null,
  };
}

export function rowY(layout: Layout, row: number): number {
  return layout.top + (row - layout.first + 0.5) * layout.rowHeight;
}

/** A square cell of the attention matrix. */
export function attentionCell(layout: Layout): { width: number; height: number } {
  const width = Math.min(layout.columns.attention.width / layout.length, layout.rowHeight);
  return { width, height: layout.rowHeight };
}

/** What stands at a place: the part to open, the token, and of attention the one looked at. */
export interface Hit {
  column: ColumnName;
  row: number;
  looked: number | null;
  block: number | null;
  across: number; // how far along the column, from 0 to 1
}

export function hitTest(layout: Layout, blocks: number, x: number, y: number): Hit | null {
  const row = layout.first + Math.floor((y - layout.top) / layout.rowHeight);
  if (y < layout.top || row < layout.first || row >= layout.first + layout.count) return null;
  const column = Object.values(layout.columns).find((each) => x >= each.x && x < each.x + each.width);
  if (column === undefined) return null;
  let looked: number | null = null;
  let block: number | null = null;
  if (column.name === "attention") {
    looked = Math.floor((x - column.x) / attentionCell(layout).width);
    if (looked >= layout.length) return null;
  }
  if (column.name === "blocks") block = Math.floor(((x - column.x) / column.width) * blocks);
  return { column: column.name, row, looked, block, across: (x - column.x) / column.width };
}

export const PART_OF_COLUMN: Partial<Record<ColumnName, PartName>> = {
  embedding: "embedding",
  norm: "norm",
  query: "head",
  key: "head",
  value: "head",
  lane: "head",
  attention: "head",
  add: "add",
  norm2: "norm2",
  feedforward: "feedforward",
  add2: "add2",
  final: "final",
};

const MAKES_QKV = new Set<StepName>(["project", "level", "rotate"]);

/** The column that shows what is open. */
export function columnOf(part: PartName, step: StepName | undefined): ColumnName {
  if (part === "head") return step !== undefined && MAKES_QKV.has(step) ? "query" : "attention";
  return part;
}

/** The site that each column shows. */
export function columnSites(block: number, head: number) {
  const inBlock = (name: string) => `block.${block}.${name}`;
  const inHead = (name: string) => inBlock(`head.${head}.${name}`);
  return {
    embedding: "embedding",
    norm: inBlock("normed"),
    query: inHead("query"),
    key: inHead("key"),
    value: inHead("value"),
    attention: inHead("weights"),
    norm2: inBlock("normed2"),
    feedforward: inBlock("hidden"),
    final: "final",
  };
}
