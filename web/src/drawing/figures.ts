/** Figures for export: a view with a title, the names of rows and columns, and a legend. */

import type { Role } from "../model/sites";
import { textColorOn, colorScale, PALETTES, type Theme } from "./colors";
import { attentionColorRange, type FlowData, paintFlow } from "./flow";
import { type Heading, INNER_FONT_SIZE, OUTER_FONT_SIZE } from "../layout/headings";
import { matrixImage } from "./matrixImage";
import type { Layout } from "../layout/columns";
import { abbreviate, estimateWidth, labeledIndices } from "./labels";
import { colorRangeOf, paintLegend, UNIT_RANGE } from "./legend";
import { ALL_VISIBLE, applyMask, type Matrix, type VisibleColumns, downsample } from "../model/matrix";
import type { Messages } from "../messages/en";
import { short } from "../messages/format.svelte";
import type { Figure } from "./export";
import type { Pen } from "./pen";

export const INK = { light: "#1d2026", dark: "#eceae4" };
export const MUTED = { light: "#5f6570", dark: "#a4aab5" };

interface MatrixFigureOptions {
  peak?: number | undefined; // the number with the strongest color
  visible?: VisibleColumns; // the rest is masked
  cellText?: (row: number, column: number) => string; // the text in each cell, instead of its number
}

/** A matrix with the names of its rows and columns, and with its numbers if it is small enough. */
export function matrixFigure(
  original: Matrix,
  names: {
    row: (row: number) => string;
    column: (column: number) => string;
    title: string;
    axes?: string | undefined; // what the rows and the columns stand for
    masked?: string; // the name of the masked cells in the legend
  },
  role: Role,
  theme: Theme,
  { peak, visible = ALL_VISIBLE, cellText }: MatrixFigureOptions = {},
): Figure {
  const matrix = applyMask(original, visible);
  const range = colorRangeOf(matrix.values, peak ?? matrix.robustPeak);
  const showsCells = cellText !== undefined || (matrix.rows <= 64 && matrix.columns <= 64);
  const cellWidth = cellText === undefined ? 46 : 76;
  const bottom = 34;
  const rowNames = Array.from({ length: matrix.rows }, (_, i) => names.row(matrix.firstRow + i));
  const left = Math.max(110, 20 + Math.max(...rowNames.map((name) => nameWidth(name, 12))));
  const [bodyWidth, bodyHeight] = showsCells
    ? [cellWidth * matrix.columns, 24 * matrix.rows]
    : fitSize(matrix);
  const size = bodyWidth / matrix.columns;
  const named = labeledIndices(matrix.firstColumn, matrix.columns, size, SLANTED_SPACING).map((column) => ({
    text: names.column(column),
    x: left + (column - matrix.firstColumn + 0.5) * size,
    width: nameWidth(names.column(column), 11),
  }));
  const longest = Math.max(...named.map(({ width }) => width));
  const slanted = longest + 4 > size; // wider than a column
  const top = 49 + (slanted ? longest * Math.sin(SLANT_RADIANS) : 11);
  const namesEnd = slanted
    ? Math.max(...named.map(({ x, width }) => x + width * Math.cos(SLANT_RADIANS)))
    : 0;
  const ink = INK[theme];
  const isMasked = matrix.values.includes(-Infinity);
  const fit = (text: string, width: number, fontSize = 11) =>
    abbreviate(text, width, (part) => estimateWidth(part, fontSize));
  return {
    width: Math.ceil(
      Math.max(
        left + LEGEND_WIDTH,
        24 + 1.1 * estimateWidth(names.title, 14),
        left + bodyWidth + 12,
        namesEnd + 12,
      ),
    ),
    height: Math.ceil(top + bodyHeight + 12 + bottom),
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 18, names.title, { size: 14, fill: ink, weight: 650 });
      const legendY = this.height - bottom / 2;
      const masked = isMasked ? names.masked : undefined;
      paintLegend(pen, left, legendY, range, role, theme, ink, masked);
      if (names.axes)
        pen.text(left - 8, top - 12, names.axes, { size: 11, fill: MUTED[theme], anchor: "end" });
      for (const row of labeledIndices(matrix.firstRow, matrix.rows, bodyHeight / matrix.rows, 18)) {
        const y = top + ((row - matrix.firstRow + 0.5) * bodyHeight) / matrix.rows;
        pen.text(left - 8, y, fit(names.row(row), left - 14, 12), { size: 12, fill: ink, anchor: "end" });
      }
      for (const { text, x } of named) {
        const style = { size: 11, fill: ink };
        if (slanted) pen.text(x, top - 8, fit(text, MAX_NAME), { ...style, angle: -SLANT });
        else pen.text(x, top - 12, text, { ...style, anchor: "middle" });
      }
      if (!showsCells) {
        const cellsPerPixel = Math.max(1, Math.floor(Math.max(matrix.rows, matrix.columns) / MAX_SIDE));
        if (isMasked) pen.hatch(left, top, bodyWidth, bodyHeight, PALETTES[theme].masked);
        pen.image(
          left,
          top,
          bodyWidth,
          bodyHeight,
          matrixImage(downsample(matrix, cellsPerPixel), role, theme, range.peak),
        );
        return;
      }
      const scale = colorScale(role, theme);
      matrix.values.forEach((value, i) => {
        const [row, column] = [Math.floor(i / matrix.columns), i % matrix.columns];
        const [x, y] = [left + cellWidth * column, top + 24 * row];
        const color = scale(value, range.peak);
        if (value === -Infinity) pen.hatch(x, y, cellWidth - 2, 22, PALETTES[theme].masked, 3);
        else pen.rect(x, y, cellWidth - 2, 22, color, 3);
        const textFill = textColorOn(color) === "light" ? "#ffffff" : "#000000";
        const fill = Number.isFinite(value) ? textFill : MUTED[theme];
        const text = truncate(cellText?.(row, column) ?? short(original.values[i]!), 12);
        pen.text(x + cellWidth / 2 - 1, y + 11, text, { size: 11, fill, anchor: "middle" });
      });
    },
  };
}

function truncate(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

const MAX_SIDE = 900; // pixels per side

/** The largest size that fits, with square cells if possible. */
function fitSize({ rows, columns }: Matrix): [number, number] {
  const cell = Math.min(46, MAX_SIDE / Math.max(rows, columns));
  return [Math.max(60, cell * columns), Math.max(60, cell * rows)];
}

const SLANT = 60; // degrees, of names that are wider than their columns
const SLANT_RADIANS = (SLANT * Math.PI) / 180;
const SLANTED_SPACING = 16; // pixels between slanted names
const MAX_NAME = 200; // pixels; longer names are shortened
const LEGEND_WIDTH = 330; // pixels, at most

function nameWidth(name: string, fontSize: number): number {
  return Math.min(MAX_NAME, estimateWidth(name, fontSize));
}

/** The flow with the names of its columns. */
export function flowFigure(
  original: Layout,
  data: FlowData,
  headings: Heading[],
  names: { title: string; block: string; feedforward: string; legend: Messages["legend"]; masked: boolean },
  theme: Theme,
): Figure {
  const [margin, header, footer] = [24, 48, 38];
  const layout = moveLayout(original, margin, header);
  const { top } = layout;
  const [width, height] = [original.width + 2 * margin, original.height + header + footer];
  return {
    width,
    height,
    paint(pen) {
      paintFlow(pen, { ...layout, width, height }, data, theme);
      pen.text(margin, 22, names.title, { size: 14, fill: INK[theme], weight: 650 });
      for (const { column, text, outer = false, role } of headings) {
        const { x, width } = layout.columns[column];
        if (width === 0) continue;
        const fill = outer ? INK[theme] : role ? PALETTES[theme].roles[role].positive : MUTED[theme];
        pen.text(x, top - (outer ? 42 : 14), text, {
          size: outer ? OUTER_FONT_SIZE : INNER_FONT_SIZE,
          fill,
          weight: 620,
        });
      }
      if (layout.block) {
        const { x, width } = layout.block;
        const fill = PALETTES[theme].roles.attention.positive;
        pen.text(x, top - 42, names.block, { size: OUTER_FONT_SIZE, fill, weight: 620 });
        pen.frame(x - 12, top - 28, width + 22, original.height - original.top + 24, MUTED[theme], 10, 1);
      }
      paintFlowLegend(pen, layout, data, margin, height - 20, names, theme);
    },
  };
}

function moveLayout(layout: Layout, right: number, down: number): Layout {
  const columns = { ...layout.columns };
  for (const column of Object.values(columns)) columns[column.name] = { ...column, x: column.x + right };
  const block = layout.block && { ...layout.block, x: layout.block.x + right };
  return { ...layout, columns, block, end: layout.end + right, top: layout.top + down };
}

/** The same legend as below the flow on the page. */
function paintFlowLegend(
  pen: Pen,
  layout: Layout,
  data: FlowData,
  x: number,
  y: number,
  { feedforward, legend, masked }: { feedforward: string; legend: Messages["legend"]; masked: boolean },
  theme: Theme,
): void {
  const style = { size: 11, fill: INK[theme] };
  const { roles } = PALETTES[theme];
  const write = (text: string) => {
    pen.text(x, y, text, style);
    x += estimateWidth(text, style.size) + 10;
  };
  const range = attentionColorRange(layout, data);
  if (range) {
    write(legend.weights);
    const name = masked ? legend.masked : undefined;
    x = paintLegend(pen, x, y, range, "attention", theme, style.fill, name) + 30;
  }
  write(legend.strips);
  x += 20;
  if (data.streams.length === 0 || layout.columns.blocks.width === 0) return;
  for (const [name, role] of [
    [legend.weights, "attention"],
    [feedforward, "feedforward"],
  ] as const) {
    pen.rect(x, y - 3, 20, 6, roles[role].positive);
    x += 26;
    write(`+ ${name}`);
  }
}

/** The attention patterns of all heads, placed as on the page. */
export function headsFigure(
  tiles: { x: number; y: number; name: string; matrix: Matrix }[],
  { width, side }: { width: number; side: number }, // of a pattern
  title: string,
  theme: Theme,
  masked?: string, // the name of the masked future, if there is one
): Figure {
  const visible: VisibleColumns = masked === undefined ? ALL_VISIBLE : (row) => [0, row + 1];
  const [top, nameHeight] = [34, 12];
  const scale = 1 + nameHeight / side; // for a name below each pattern
  const position = ({ x, y }: { x: number; y: number }) => [12 + x, top + y * scale] as const;
  return {
    width: Math.max(360, 24 + Math.max(0, ...tiles.map(({ x }) => x + width))),
    height: top + Math.max(0, ...tiles.map(({ y }) => y * scale + side + nameHeight)) + 34,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 16, title, { size: 14, fill: INK[theme], weight: 650 });
      for (const tile of tiles) {
        const [x, y] = position(tile);
        pen.hatch(x, y, width, side, PALETTES[theme].masked);
        pen.image(x, y, width, side, matrixImage(applyMask(tile.matrix, visible), "attention", theme, 1));
        const size = Math.min(9, side / 2.4);
        pen.text(x + width / 2, y + side + 6, tile.name, { size, fill: MUTED[theme], anchor: "middle" });
      }
      paintLegend(pen, 12, this.height - 14, UNIT_RANGE, "attention", theme, INK[theme], masked);
    },
  };
}

export interface Bar {
  name: string;
  size: number;
  labels: string[]; // the numbers beside it
}

/** A bar chart; negative bars have a different color and point the other way. `full` is the number that fills the width:
 * the largest by default. */
export function barsFigure(bars: Bar[], title: string, theme: Theme, full?: number): Figure {
  const [top, rowHeight, barWidth, labelWidth] = [40, 24, 240, 58];
  const left = Math.max(130, ...bars.map(({ name }) => 7 * name.length + 24));
  const sizes = bars.map(({ size }) => size);
  const [lowest, highest] = [Math.min(0, ...sizes), full ?? Math.max(0, ...sizes)];
  const unit = barWidth / Math.max(1e-9, highest - lowest);
  const zero = left - lowest * unit;
  const { attention, feedforward } = PALETTES[theme].roles;
  return {
    width: Math.max(8 * title.length + 24, left + barWidth + labelWidth * (bars[0]?.labels.length ?? 1) + 14),
    height: top + rowHeight * bars.length + 12,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 18, title, { size: 14, fill: INK[theme], weight: 650 });
      bars.forEach(({ name, size, labels }, i) => {
        const y = top + (i + 0.5) * rowHeight;
        const weight = i === 0 ? 700 : 420;
        pen.text(left - 10, y, name, { size: 13, fill: INK[theme], anchor: "end", weight });
        const fill = (size < 0 ? feedforward : attention).positive;
        const length = Math.max(2, unit * Math.abs(size));
        pen.rect(size < 0 ? zero - length : zero, y - 8, length, 16, fill, 3);
        labels.forEach((number, k) => {
          const style = { size: 12, fill: MUTED[theme], anchor: "end" } as const;
          pen.text(left + barWidth + labelWidth * (k + 1), y, number, style);
        });
      });
    },
  };
}
