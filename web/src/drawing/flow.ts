/** Paints the flow: all columns for one block and one head. */

import type { Area, Role } from "../model/sites";
import { paintBlocks } from "./blocks";
import { colorScale, PALETTES, type Theme } from "./colors";
import { type ColorRange, colorRangeOf, SIGNED_STEPS } from "./legend";
import { attentionCell, type Column, type ColumnName, type Hit, type Layout, rowY } from "../layout/columns";
import { abbreviate, estimateWidth } from "./labels";
import { findRobustPeak, type Matrix, poolLargest, type VisibleColumns } from "../model/matrix";
import { tokenLabel } from "../messages/format.svelte";
import type { Pen } from "./pen";
import type { PartName } from "../model/steps";

export const SHORT_TEXT = 32; // tokens: in longer texts, most attention weights are far below 1

export interface FlowData {
  tokens: string[];
  row: number; // the selected token
  attended: number | null; // the token to frame in its row of attention weights
  pointed?: Hit | null; // what is under the pointer; its cell is framed instead
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
  streams: Matrix[]; // for each block, the norms of its input, attention and feed-forward
  lens: string[]; // the token that the logit lens reads after each block
  sites: Partial<Record<ColumnName, string>>; // the site that each column shows
  isSilent: boolean; // whether an edit keeps the head from writing to the selected token
  highlighted: Area[]; // the inputs of the explained number
  visible: VisibleColumns;
}

/** Column, role, cells per row and field of each column that is drawn as a stripe of cells. */
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
  const muted = theme === "light" ? "#8b909a" : "#7d8490";
  const line = theme === "light" ? "#dedcd5" : "#3a3f48";
  const { columns, rowHeight, first, count } = layout;
  const rows = Array.from({ length: count }, (_, i) => first + i);
  pen.rect(0, 0, layout.width, layout.height, PALETTES[theme].paper);
  for (const row of rows) {
    const selected = row === data.row;
    const y = rowY(layout, row);
    const start = columns.tokens.x + columns.tokens.width + 3;
    pen.line(start, y, layout.end, y, selected ? muted : line, selected ? 4 : Math.min(3, rowHeight / 5));
  }
  paintTokens(pen, layout, data, rows, ink, muted);
  for (const [name, role, cells, field] of STRIPES) {
    const matrix = data[field] as Matrix | undefined;
    if (matrix && columns[name].width > 0)
      paintStripes(pen, layout, columns[name], matrix, rows, cells, role, theme);
    if (columns[name].width > 0) paintColorStrip(pen, layout, columns[name], role, theme);
  }
  if (data.weights && columns.attention.width > 0) {
    paintAttentionCurves(pen, layout, data, theme);
    paintAttention(pen, layout, data, rows, theme);
  }
  for (const area of data.highlighted) paintHighlight(pen, layout, data, area, ink);
  if (data.pointed) paintPointed(pen, layout, data, data.pointed, ink);
  for (const name of ["add", "add2"] as const) {
    if (columns[name].width === 0) continue;
    const x = columns[name].x + columns[name].width / 2;
    const radius = Math.min(6, rowHeight / 3);
    for (const row of rows) {
      const y = rowY(layout, row);
      pen.circle(x, y, radius, muted, PALETTES[theme].paper);
      if (radius < 2.5) continue;
      const arm = radius < 4 ? radius - 1 : radius - 2;
      pen.line(x - arm, y, x + arm, y, muted, 1.25);
      pen.line(x, y - arm, x, y + arm, muted, 1.25);
    }
  }
  paintBlocks(pen, layout, data, rows, theme);
}

/** Paints all row numbers before all tokens, because changing the font is slow. */
function paintTokens(
  pen: Pen,
  layout: Layout,
  data: FlowData,
  rows: number[],
  ink: string,
  muted: string,
): void {
  const { tokens } = layout.columns;
  const size = Math.min(14, layout.rowHeight);
  for (const row of rows)
    pen.text(tokens.x + 2, rowY(layout, row), String(row), { size: Math.min(11, size), fill: muted });
  const maxLength = Math.floor((tokens.width - 30) / (size * 0.56));
  for (const row of rows) {
    const label = tokenLabel(data.tokens[row] ?? "");
    const text = label.length > maxLength ? `${label.slice(0, maxLength - 1)}…` : label;
    const weight = row === data.row || row === data.pointed?.row ? 700 : 420;
    pen.text(tokens.x + tokens.width, rowY(layout, row), text, { size, fill: ink, anchor: "end", weight });
  }
}

/** The height of a row of cells. */
export function stripeHeight(layout: Layout): number {
  return Math.min(layout.rowHeight - 2, 16);
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
  const height = stripeHeight(layout);
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

const STRIP = { gap: 3, height: 4 }; // pixels, below the last row

/** The colors of a column from its lowest number to its highest. */
function paintColorStrip(pen: Pen, layout: Layout, { x, width }: Column, role: Role, theme: Theme): void {
  const scale = colorScale(role, theme);
  const y = layout.top + layout.count * layout.rowHeight + STRIP.gap;
  const step = width / SIGNED_STEPS.length;
  SIGNED_STEPS.forEach((value, i) => pen.rect(x + i * step, y, step, STRIP.height, scale(value, 1)));
}

/** The attention of the selected token: a curve from each token's value, as wide as its weight. */
function paintAttentionCurves(pen: Pen, layout: Layout, data: FlowData, theme: Theme): void {
  const { lane } = layout.columns;
  const color = PALETTES[theme].roles.value.positive;
  const weights = data.weights!.row(data.row);
  if (data.isSilent || data.row < layout.first || data.row >= layout.first + layout.count) return;
  weights.forEach((weight, attended) => {
    if (weight < 0.01 || attended < layout.first || attended >= layout.first + layout.count) return;
    const thickness = Math.max(0.75, weight * Math.min(14, layout.rowHeight));
    const [from, to] = [rowY(layout, attended), rowY(layout, data.row)];
    pen.curve(lane.x, from, lane.x + lane.width, to, color, thickness, 0.25 + 0.65 * weight);
  });
}

function paintAttention(pen: Pen, layout: Layout, data: FlowData, rows: number[], theme: Theme): void {
  const { attention } = layout.columns;
  const { width } = attentionCell(layout);
  const scale = colorScale("attention", theme);
  const weights = cellWeights(layout, data, rows);
  const { peak } = attentionColorRange(layout, data)!;
  const perCell = tokensPerCell(layout);
  const radius = width > 8 ? 2.5 : 0;
  const { gap, height: cellHeight } = drawnCell(layout);
  rows.forEach((row, i) => {
    const y = rowY(layout, row) - cellHeight / 2;
    pen.rect(attention.x, y - 1, width * layout.length, cellHeight + 2, PALETTES[theme].paper);
    weights[i]!.forEach((weight, k) => {
      const [x, count] = [attention.x + k * perCell * width, Math.min(perCell, layout.length - k * perCell)];
      if (weight === -Infinity)
        pen.hatch(x, y, count * width - gap, cellHeight, PALETTES[theme].masked, radius);
      else pen.rect(x, y, count * width - gap, cellHeight, scale(weight, peak), radius);
    });
  });
  const ink = theme === "light" ? "#1d2026" : "#eceae4";
  if (width >= MIN_NAMED) paintColumnNames(pen, layout, data, rows, theme, ink);
  if (data.attended !== null && !data.pointed) paintFrame(pen, layout, data.row, data.attended, ink);
}

const MIN_NAMED = 6; // pixels: the names of narrower cells would overlap

/** The name of each column, beside its topmost cell: the masked future leaves room for it there. */
function paintColumnNames(
  pen: Pen,
  layout: Layout,
  data: FlowData,
  rows: number[],
  theme: Theme,
  ink: string,
): void {
  const { attention } = layout.columns;
  const { width } = attentionCell(layout);
  const size = Math.min(11, layout.rowHeight - 0.5);
  const height = Math.max(drawnCell(layout).height, size + 2);
  const end = attention.x + layout.length * width;
  const attended = data.pointed ? data.pointed.attended : data.attended;
  for (const row of rows) {
    const [, last] = data.visible(row);
    if (last !== row + 1) return; // nothing is masked
    const x = attention.x + last * width;
    if (last >= layout.length) continue;
    const label = abbreviate(tokenLabel(data.tokens[row] ?? ""), end - x - 6, (text) =>
      estimateWidth(text, size),
    );
    if (label === "…") continue; // no room
    const textWidth = Math.min(end - x, estimateWidth(label, size) + 8);
    pen.rect(x - 1, rowY(layout, row) - height / 2 - 1, textWidth, height + 2, PALETTES[theme].paper);
    const style = row === attended ? { fill: ink, weight: 700 } : { fill: MUTED_NAMES[theme], weight: 420 };
    pen.text(x + 2, rowY(layout, row), label, { size, ...style });
  }
}

const MUTED_NAMES = { light: "#5f6570", dark: "#a4aab5" };

/** The height of an attention cell as it is drawn, and the gap between two cells. */
function drawnCell(layout: Layout): { height: number; gap: number } {
  const { width, height } = attentionCell(layout);
  const gap = width > 8 ? 1.5 : width > 4 ? 0.75 : 0;
  return { gap, height: Math.min(height, Math.max(width, 6)) - Math.min(gap, 1) };
}

/** Frames one attention weight, or the weights that share its cell. */
function paintFrame(pen: Pen, layout: Layout, row: number, attended: number, ink: string): void {
  if (row < layout.first || row >= layout.first + layout.count) return;
  const { width } = attentionCell(layout);
  const { gap, height } = drawnCell(layout);
  const perCell = tokensPerCell(layout);
  const first = Math.floor(attended / perCell) * perCell;
  const count = Math.min(perCell, layout.length - first);
  const x = layout.columns.attention.x + first * width;
  pen.frame(x - 1, rowY(layout, row) - height / 2 - 1, count * width - gap + 2, height + 2, ink, 3, 1.75);
}

/** Frames the cell under the pointer. */
function paintPointed(pen: Pen, layout: Layout, data: FlowData, pointed: Hit, ink: string): void {
  if (pointed.attended !== null && data.weights)
    return paintFrame(pen, layout, pointed.row, pointed.attended, ink);
  const stripe = STRIPES.find(([name]) => name === pointed.column);
  const matrix = stripe && (data[stripe[3]] as Matrix | undefined);
  if (!stripe || !matrix) return;
  const { x, width } = layout.columns[pointed.column];
  const cells = Math.min(stripe[2], matrix.columns);
  const height = stripeHeight(layout);
  const left = x + (Math.floor(pointed.across * cells) * width) / cells;
  pen.frame(
    left - 1,
    rowY(layout, pointed.row) - height / 2 - 1,
    width / cells + 1.5,
    height + 2,
    ink,
    2,
    1.75,
  );
}

/** How many tokens share a cell, so that no cell is too narrow to be visible. */
function tokensPerCell(layout: Layout): number {
  return Math.max(1, Math.ceil(3 / attentionCell(layout).width));
}

/** The largest weight among the tokens that share a cell; −∞ if all of them are masked. */
function cellWeights(layout: Layout, data: FlowData, rows: number[]): number[][] {
  const perCell = tokensPerCell(layout);
  return rows.map((row) => {
    const [first, last] = data.visible(row);
    return Array.from({ length: Math.ceil(layout.length / perCell) }, (_, i) => {
      let largest = -Infinity;
      const end = Math.min(layout.length, (i + 1) * perCell, last);
      for (let k = Math.max(i * perCell, first); k < end; k++)
        largest = Math.max(largest, data.weights!.at(row, k));
      return largest;
    });
  });
}

function cellColorRange(weights: number[][], length: number): ColorRange {
  const all = weights.flat();
  return colorRangeOf(all, length <= SHORT_TEXT ? 1 : findRobustPeak(all));
}

/** The color range of the attention weights on screen. */
export function attentionColorRange(layout: Layout, data: FlowData): ColorRange | undefined {
  if (!data.weights || layout.columns.attention.width === 0) return undefined;
  // All rows, not only those on the screen: scrolling must not change the color of a weight.
  const { firstRow, rows: count } = data.weights;
  const rows = Array.from({ length: count }, (_, i) => firstRow + i);
  return cellColorRange(cellWeights(layout, data, rows), layout.length);
}

/** Frames the rows of a column that a number was computed from. */
function paintHighlight(pen: Pen, layout: Layout, data: FlowData, area: Area, ink: string): void {
  const column = Object.values(layout.columns).find(
    ({ name, width }) => width > 0 && data.sites[name] === area.name,
  );
  if (!column) return;
  const [start, end] = area.rows ?? [0, layout.length];
  const from = Math.max(start, layout.first);
  const to = Math.min(end, layout.first + layout.count);
  if (from >= to) return;
  const isAttention = column.name === "attention";
  const { width } = attentionCell(layout);
  const [left, right] = isAttention ? (area.columns ?? [0, layout.length]) : [0, 0];
  const x = isAttention ? column.x + left * width : column.x;
  const frameWidth = isAttention ? (right - left) * width : column.width;
  const half = Math.min(layout.rowHeight, 20) / 2;
  const top = rowY(layout, from) - half;
  pen.frame(x - 2, top, frameWidth + 3, rowY(layout, to - 1) + half - top, ink, 4, 1.5);
}
