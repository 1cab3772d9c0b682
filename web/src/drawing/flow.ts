/** The flow as a picture: what each column shows, and how it is painted. */

import type { Area, Role } from "../model/sites";
import { colorScale, PALETTES, type Theme } from "./colors";
import { type ColorRange, colorRangeOf } from "./legend";
import { attentionCell, type Column, type ColumnName, type Layout, rowY } from "../layout/columns";
import { findRobustPeak, type Matrix, poolLargest, type VisibleColumns } from "../model/matrix";
import { tokenLabel } from "../messages/format.svelte";
import type { Pen } from "./pen";
import type { PartName } from "../model/steps";

export const SHORT_TEXT = 32; // tokens: in longer texts no attention weight is near 1

export interface FlowData {
  tokens: string[];
  row: number; // the token that is followed
  looked: number | null;
  block: number;
  part: PartName;
  embedding?: Matrix | undefined;
  normed?: Matrix | undefined;
  query?: Matrix | undefined;
  key?: Matrix | undefined;
  value?: Matrix | undefined;
  weights?: Matrix | undefined;
  normed2?: Matrix | undefined;
  hidden?: Matrix | undefined;
  final?: Matrix | undefined;
  streams: Matrix[];
  sites: Partial<Record<ColumnName, string>>; // what each column shows
  lit: Area[]; // what the number pointed at was computed from
  seen: VisibleColumns;
}

export const STRIPES: [ColumnName, Role, number, keyof FlowData][] = [
  ["embedding", "residual", 18, "embedding"],
  ["norm", "residual", 7, "normed"],
  ["query", "query", 10, "query"],
  ["key", "key", 10, "key"],
  ["value", "value", 10, "value"],
  ["norm2", "residual", 7, "normed2"],
  ["feedforward", "feedforward", 24, "hidden"],
  ["final", "residual", 7, "final"],
];

export function paintFlow(pen: Pen, layout: Layout, data: FlowData, theme: Theme): void {
  const ink = theme === "light" ? "#1d2026" : "#eceae4";
  const quiet = theme === "light" ? "#8b909a" : "#7d8490";
  const line = theme === "light" ? "#dedcd5" : "#3a3f48";
  const { columns, rowHeight, first, count } = layout;
  const rows = Array.from({ length: count }, (_, i) => first + i);
  pen.rect(0, 0, layout.width, layout.height, PALETTES[theme].paper);
  for (const row of rows) {
    const followed = row === data.row;
    const y = rowY(layout, row);
    const start = columns.tokens.x + columns.tokens.width + 3;
    pen.line(start, y, layout.end, y, followed ? quiet : line, followed ? 4 : Math.min(3, rowHeight / 5));
  }
  paintTokens(pen, layout, data, rows, ink, quiet);
  for (const [name, role, cells, from] of STRIPES) {
    const matrix = data[from] as Matrix | undefined;
    if (matrix && columns[name].width > 0)
      paintStripes(pen, layout, columns[name], matrix, rows, cells, role, theme);
  }
  if (data.weights && columns.attention.width > 0) {
    paintLane(pen, layout, data, theme);
    paintAttention(pen, layout, data, rows, theme);
  }
  for (const area of data.lit) paintLit(pen, layout, data, area, ink);
  for (const name of ["add", "add2"] as const) {
    if (columns[name].width === 0) continue;
    const x = columns[name].x + columns[name].width / 2;
    const radius = Math.min(6, rowHeight / 3);
    for (const row of rows) {
      const y = rowY(layout, row);
      pen.circle(x, y, radius, quiet, PALETTES[theme].paper);
      if (radius < 4) continue;
      pen.line(x - radius + 2, y, x + radius - 2, y, quiet, 1.25);
      pen.line(x, y - radius + 2, x, y + radius - 2, quiet, 1.25);
    }
  }
  paintBlocks(pen, layout, data, rows, theme);
}

/** All numbers, then all words: changing the font takes longer than writing. */
function paintTokens(
  pen: Pen,
  layout: Layout,
  data: FlowData,
  rows: number[],
  ink: string,
  quiet: string,
): void {
  const { tokens } = layout.columns;
  const size = Math.min(14, layout.rowHeight - 1);
  for (const row of rows)
    pen.text(2, rowY(layout, row), String(row), { size: Math.min(11, size), fill: quiet });
  const most = Math.floor((tokens.width - 30) / (size * 0.56));
  for (const row of rows) {
    const word = tokenLabel(data.tokens[row] ?? "");
    const text = word.length > most ? `${word.slice(0, most - 1)}…` : word;
    const weight = row === data.row ? 700 : 420;
    pen.text(tokens.x + tokens.width, rowY(layout, row), text, { size, fill: ink, anchor: "end", weight });
  }
}

function paintStripes(
  pen: Pen,
  layout: Layout,
  column: Column,
  matrix: Matrix,
  rows: number[],
  cells: number,
  role: Role,
  theme: Theme,
): void {
  const scale = colorScale(role, theme);
  const height = Math.min(layout.rowHeight - 2, 16);
  const pooled = rows.map((row) => poolLargest(matrix.row(row), cells));
  const peak = findRobustPeak(pooled.flatMap((values) => [...values]));
  for (const row of rows)
    pen.rect(column.x - 1, rowY(layout, row) - height / 2, column.width + 2, height, PALETTES[theme].paper);
  rows.forEach((row, i) => {
    const values = pooled[i]!;
    const width = column.width / values.length;
    const y = rowY(layout, row) - height / 2;
    values.forEach((value, k) =>
      pen.rect(column.x + k * width, y, Math.max(1, width - 0.5), height, scale(value, peak)),
    );
  });
}

/** What the followed token takes from the others: values on their way, as thick as their weights. */
function paintLane(pen: Pen, layout: Layout, data: FlowData, theme: Theme): void {
  const { lane } = layout.columns;
  const color = PALETTES[theme].roles.value.positive;
  const weights = data.weights!.row(data.row);
  if (data.row < layout.first || data.row >= layout.first + layout.count) return;
  weights.forEach((weight, looked) => {
    if (weight < 0.01 || looked < layout.first || looked >= layout.first + layout.count) return;
    const thick = Math.max(0.75, weight * Math.min(14, layout.rowHeight));
    const [from, to] = [rowY(layout, looked), rowY(layout, data.row)];
    pen.curve(lane.x, from, lane.x + lane.width, to, color, thick, 0.25 + 0.65 * weight);
  });
}

function paintAttention(pen: Pen, layout: Layout, data: FlowData, rows: number[], theme: Theme): void {
  const { attention } = layout.columns;
  const { width, height } = attentionCell(layout);
  const scale = colorScale("attention", theme);
  const drawn = drawnWeights(layout, data, rows);
  const { peak } = endsOfDrawn(drawn, layout.length);
  const gap = width > 8 ? 1.5 : width > 4 ? 0.75 : 0;
  const together = drawnTogether(layout);
  const radius = width > 8 ? 2.5 : 0;
  const tall = Math.min(height, Math.max(width, 6)) - Math.min(gap, 1);
  rows.forEach((row, i) => {
    const y = rowY(layout, row) - tall / 2;
    pen.rect(attention.x, y - 1, width * layout.length, tall + 2, PALETTES[theme].paper);
    drawn[i]!.forEach((weight, k) => {
      const x = attention.x + k * together * width;
      pen.rect(x, y, together * width - gap, tall, scale(weight, peak), radius);
    });
  });
  if (data.looked !== null && data.row >= layout.first && data.row < layout.first + layout.count) {
    const y = rowY(layout, data.row) - tall / 2;
    const ink = theme === "light" ? "#1d2026" : "#eceae4";
    pen.frame(attention.x + data.looked * width - 1, y - 1, width - gap + 2, tall + 2, ink, 3, 1.75);
  }
}

/** So many that none is too narrow to be seen. */
function drawnTogether(layout: Layout): number {
  return Math.max(1, Math.ceil(3 / attentionCell(layout).width));
}

/** Of the tokens drawn together the one that is looked at most; −∞ where none may be seen. */
function drawnWeights(layout: Layout, data: FlowData, rows: number[]): number[][] {
  const together = drawnTogether(layout);
  return rows.map((row) => {
    const [first, last] = data.seen(row);
    return Array.from({ length: Math.ceil(layout.length / together) }, (_, i) => {
      let most = -Infinity;
      const end = Math.min(layout.length, (i + 1) * together, last);
      for (let k = Math.max(i * together, first); k < end; k++)
        most = Math.max(most, data.weights!.at(row, k));
      return most;
    });
  });
}

function endsOfDrawn(drawn: number[][], length: number): ColorRange {
  const all = drawn.flat();
  return colorRangeOf(all, length <= SHORT_TEXT ? 1 : findRobustPeak(all));
}

/** What the colors of attention stand for. */
export function attentionColorRange(layout: Layout, data: FlowData): ColorRange | undefined {
  if (!data.weights || layout.columns.attention.width === 0) return undefined;
  const rows = Array.from({ length: layout.count }, (_, i) => layout.first + i);
  return endsOfDrawn(drawnWeights(layout, data, rows), layout.length);
}

/** Frames around the rows of a column that a number was computed from. */
function paintLit(pen: Pen, layout: Layout, data: FlowData, area: Area, ink: string): void {
  const column = Object.values(layout.columns).find(
    ({ name, width }) => width > 0 && data.sites[name] === area.name,
  );
  if (!column) return;
  const [start, end] = area.rows ?? [0, layout.length];
  const from = Math.max(start, layout.first);
  const to = Math.min(end, layout.first + layout.count);
  if (from >= to) return;
  const square = column.name === "attention";
  const { width } = attentionCell(layout);
  const [left, right] = square ? (area.columns ?? [0, layout.length]) : [0, 0];
  const x = square ? column.x + left * width : column.x;
  const wide = square ? (right - left) * width : column.width;
  const half = Math.min(layout.rowHeight, 20) / 2;
  const top = rowY(layout, from) - half;
  pen.frame(x - 2, top, wide + 3, rowY(layout, to - 1) + half - top, ink, 4, 1.5);
}

/** For each block how much it adds to each stream, against what enters: a square each, this block framed. */
function paintBlocks(pen: Pen, layout: Layout, data: FlowData, rows: number[], theme: Theme): void {
  const { blocks } = layout.columns;
  const count = data.streams.length;
  if (count === 0 || blocks.width === 0) return;
  const width = blocks.width / count;
  const scale = colorScale("residual", theme);
  const height = Math.min(layout.rowHeight - 3, 12, Math.max(5, 1.6 * width));
  for (const row of rows)
    pen.rect(blocks.x - 0.5, rowY(layout, row) - height / 2, blocks.width, height, PALETTES[theme].paper);
  data.streams.forEach((lengths, block) => {
    for (const row of rows) {
      const added = Math.hypot(lengths.at(1, row), lengths.at(2, row)) / lengths.at(0, row);
      const x = blocks.x + block * width;
      pen.rect(x, rowY(layout, row) - height / 2, Math.max(1, width - 1.5), height, scale(added, 1.2), 1.5);
    }
  });
  const ink = theme === "light" ? "#7a49d0" : "#b797ff";
  const y = rowY(layout, rows[0]!) - layout.rowHeight / 2;
  pen.frame(blocks.x + data.block * width - 1.5, y, width + 1.5, layout.rowHeight * rows.length, ink, 3, 1.5);
}
