/** The layout of the flow: one row per token, and the columns that fit on a page. */

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
  width: number; // 0 if it is on another page
}

export interface Layout {
  width: number;
  height: number;
  top: number; // y of the first row
  rowHeight: number;
  first: number; // index of the first visible row
  count: number; // visible rows
  length: number; // number of tokens
  columns: Record<ColumnName, Column>;
  end: number; // x where the streams end
  block: { x: number; width: number } | null; // the frame of the block's columns
}

// Width and gap of each column, in relative units.
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

// Columns that stay together on one page.
const GROUPS: ColumnName[][] = [
  ["embedding"],
  ["norm", "query", "key", "value"],
  ["lane", "attention"],
  ["add", "norm2", "feedforward", "add2"],
  ["blocks", "final"],
];
const BLOCK_COLUMNS = new Set<ColumnName>(GROUPS.slice(1, 4).flat());

/** The smallest width of each column, including its heading and the gap after it. */
export type MinWidths = Partial<Record<ColumnName, number>>;
const MIN_WIDTHS: MinWidths = { tokens: 74, lane: 34, add: 20, add2: 30 };
const MIN_WIDTH = 18;

export const LONG_TEXT = 64; // tokens; for longer texts, only the rows on or near the screen are read

export const TOP = 46; // pixels above the first row
const MAX_ROW_HEIGHT = 26;
const MIN_ROW_HEIGHT = 10;

/** How many rows fit. */
export function rowsThatFit(height: number, length: number): number {
  return Math.min(length, Math.max(1, Math.floor((height - TOP) / MIN_ROW_HEIGHT)));
}

/** Distributes the columns over pages, with as many groups on a page as the width allows. */
export function paginateColumns(width: number, minWidths: MinWidths): ColumnName[][] {
  const pages: ColumnName[][] = [];
  for (const group of GROUPS) {
    const page = pages.at(-1);
    if (page && totalMinWidth(["tokens", ...page, ...group], minWidths) <= width) page.push(...group);
    else pages.push([...group]);
  }
  return pages;
}

function minWidth(name: ColumnName, minWidths: MinWidths): number {
  return Math.max(MIN_WIDTHS[name] ?? MIN_WIDTH, minWidths[name] ?? 0);
}

function totalMinWidth(names: ColumnName[], minWidths: MinWidths): number {
  return names.reduce((sum, name) => sum + minWidth(name, minWidths), 0);
}

/** Divides the width by the columns' shares, but gives each column at least its smallest width. */
function divide(names: ColumnName[], width: number, minWidths: MinWidths): Map<ColumnName, number> {
  const shareOf = (name: ColumnName) => SHARES[name][0] + SHARES[name][1];
  const fixed = new Set<ColumnName>();
  for (;;) {
    const flexible = names.filter((name) => !fixed.has(name));
    const remaining = width - totalMinWidth([...fixed], minWidths);
    const unit = remaining / flexible.reduce((sum, name) => sum + shareOf(name), 0);
    const tooNarrow = flexible.filter((name) => shareOf(name) * unit < minWidth(name, minWidths));
    if (tooNarrow.length === 0 || tooNarrow.length === flexible.length) {
      return new Map(
        names.map((name) => [name, fixed.has(name) ? minWidth(name, minWidths) : shareOf(name) * unit]),
      );
    }
    for (const name of tooNarrow) fixed.add(name);
  }
}

export function layOutFlow(
  width: number,
  maxHeight: number,
  length: number,
  first: number,
  minWidths: MinWidths = {},
  page = 0,
): Layout {
  const count = rowsThatFit(maxHeight, length);
  const rowHeight = Math.min(MAX_ROW_HEIGHT, (maxHeight - TOP) / Math.max(1, count));
  const pages = paginateColumns(width, minWidths);
  const shown = pages[Math.min(page, pages.length - 1)]!;
  const columns = {} as Record<ColumnName, Column>;
  for (const name of Object.keys(SHARES) as ColumnName[]) columns[name] = { name, x: 0, width: 0 };
  let x = 0;
  for (const [name, total] of divide(["tokens", ...shown], width, minWidths)) {
    const [share, gap] = SHARES[name];
    columns[name] = { name, x, width: (total * share) / (share + gap) };
    x += total;
  }
  const blockColumns = shown.filter((name) => BLOCK_COLUMNS.has(name)).map((name) => columns[name]);
  const start = blockColumns[0]?.x ?? 0;
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
    block:
      blockColumns.length > 0
        ? { x: start, width: blockColumns.at(-1)!.x + blockColumns.at(-1)!.width - start }
        : null,
  };
}

export function rowY(layout: Layout, row: number): number {
  return layout.top + (row - layout.first + 0.5) * layout.rowHeight;
}

/** A cell of the attention matrix. */
export function attentionCell(layout: Layout): { width: number; height: number } {
  const width = Math.min(layout.columns.attention.width / layout.length, layout.rowHeight);
  return { width, height: layout.rowHeight };
}

/** What is at a point of the flow. */
export interface Hit {
  column: ColumnName;
  row: number;
  attended: number | null;
  block: number | null;
  across: number; // relative position within the column, 0 to 1
}

export function hitTest(layout: Layout, blocks: number, x: number, y: number): Hit | null {
  const row = layout.first + Math.floor((y - layout.top) / layout.rowHeight);
  if (y < layout.top || row < layout.first || row >= layout.first + layout.count) return null;
  const column = Object.values(layout.columns).find(({ x: left, width }) => x >= left && x < left + width);
  if (column === undefined) return null;
  let attended: number | null = null;
  let block: number | null = null;
  if (column.name === "attention") {
    attended = Math.floor((x - column.x) / attentionCell(layout).width);
    if (attended >= layout.length) return null;
  }
  if (column.name === "blocks") block = Math.floor(((x - column.x) / column.width) * blocks);
  return { column: column.name, row, attended, block, across: (x - column.x) / column.width };
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

const QKV_STEPS = new Set<StepName>(["project", "level", "rotate"]);

/** The column that shows the selected part and step. */
export function columnOf(part: PartName, step: StepName | undefined): ColumnName {
  if (part === "head") return step !== undefined && QKV_STEPS.has(step) ? "query" : "attention";
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
