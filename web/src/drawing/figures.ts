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
import { short } from "../messages/format.svelte";
import type { Figure } from "./export";

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
    masked?: string; // of the masked cells, in the legend
  },
  role: Role,
  theme: Theme,
  { peak, visible = ALL_VISIBLE, cellText }: MatrixFigureOptions = {},
): Figure {
  const matrix = applyMask(original, visible);
  const range = colorRangeOf(matrix.values, peak ?? matrix.robustPeak);
  const showsCells = cellText !== undefined || (matrix.rows <= 64 && matrix.columns <= 64);
  const cellWidth = cellText === undefined ? 46 : 76;
  const [left, bottom] = [110, 34];
  const [bodyWidth, bodyHeight] = showsCells
    ? [cellWidth * matrix.columns, 24 * matrix.rows]
    : fitSize(matrix);
  const size = bodyWidth / matrix.columns;
  const named = labeledIndices(matrix.firstColumn, matrix.columns, size, VERTICAL_SPACING);
  const longest = Math.max(...named.map((column) => estimateWidth(names.column(column), 11)));
  const rotated = size < Math.min(longest + 6, 46); // narrow columns have vertical names
  const [spacing, space] = rotated ? [VERTICAL_SPACING, Math.min(84, longest)] : [46, 11];
  const top = 49 + space;
  const ink = INK[theme];
  const isMasked = matrix.values.includes(-Infinity);
  const fit = (text: string, width: number, fontSize = 11) =>
    abbreviate(text, width, (part) => estimateWidth(part, fontSize));
  return {
    width: Math.max(320, left + bodyWidth + 12),
    height: top + bodyHeight + 12 + bottom,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 18, names.title, { size: 14, fill: ink, weight: 650 });
      const legendY = this.height - bottom / 2;
      paintLegend(pen, left, legendY, range, role, theme, ink, isMasked ? names.masked : undefined);
      for (const row of labeledIndices(matrix.firstRow, matrix.rows, bodyHeight / matrix.rows, 18)) {
        const y = top + ((row - matrix.firstRow + 0.5) * bodyHeight) / matrix.rows;
        pen.text(left - 8, y, fit(names.row(row), left - 14, 12), { size: 12, fill: ink, anchor: "end" });
      }
      for (const column of labeledIndices(matrix.firstColumn, matrix.columns, size, spacing)) {
        const x = left + (column - matrix.firstColumn + 0.5) * size;
        const text = fit(names.column(column), rotated ? space : Math.max(size, spacing) - 4);
        if (rotated) pen.text(x, top - 6, text, { size: 11, fill: ink, angle: -90 });
        else pen.text(x, top - 12, text, { size: 11, fill: ink, anchor: "middle" });
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

const VERTICAL_SPACING = 14; // pixels between vertical names

/** The flow with the names of its columns. */
export function flowFigure(
  layout: Layout,
  data: FlowData,
  headings: Heading[],
  { title, block, masked }: { title: string; block: string; masked?: string | undefined },
  theme: Theme,
): Figure {
  const [header, footer] = [40, 30];
  const top = layout.top + header;
  const shifted = { ...layout, top, height: layout.height + header + footer };
  const range = attentionColorRange(layout, data);
  return {
    width: shifted.width,
    height: shifted.height,
    paint(pen) {
      paintFlow(pen, shifted, data, theme);
      pen.text(2, 14, title, { size: 14, fill: INK[theme], weight: 650 });
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
        pen.text(x, top - 42, block, { size: OUTER_FONT_SIZE, fill, weight: 620 });
        pen.frame(x - 12, top - 28, width + 22, layout.height - layout.top + 24, MUTED[theme], 10, 1);
      }
      if (range) {
        const { x } = layout.columns.attention;
        paintLegend(pen, x, shifted.height - 14, range, "attention", theme, INK[theme], masked);
      }
    },
  };
}

/** The attention patterns of all heads, placed as on the page. */
export function headsFigure(
  tiles: { x: number; y: number; name: string; matrix: Matrix }[],
  side: number,
  title: string,
  theme: Theme,
  masked?: string, // the name of the masked future, if there is one
): Figure {
  const visible: VisibleColumns = masked === undefined ? ALL_VISIBLE : (row) => [0, row + 1];
  const [top, nameHeight] = [34, 12];
  const scale = 1 + nameHeight / side; // for a name below each pattern
  const position = ({ x, y }: { x: number; y: number }) => [12 + x, top + y * scale] as const;
  return {
    width: Math.max(360, 24 + Math.max(0, ...tiles.map(({ x }) => x + side))),
    height: top + Math.max(0, ...tiles.map(({ y }) => y * scale + side + nameHeight)) + 34,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 16, title, { size: 14, fill: INK[theme], weight: 650 });
      for (const tile of tiles) {
        const [x, y] = position(tile);
        pen.hatch(x, y, side, side, PALETTES[theme].masked);
        pen.image(x, y, side, side, matrixImage(applyMask(tile.matrix, visible), "attention", theme, 1));
        const size = Math.min(9, side / 2.4);
        pen.text(x + side / 2, y + side + 6, tile.name, { size, fill: MUTED[theme], anchor: "middle" });
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

/** A bar chart; the sign decides the color. */
export function barsFigure(bars: Bar[], title: string, theme: Theme): Figure {
  const [top, rowHeight, barWidth, labelWidth] = [40, 24, 240, 58];
  const left = Math.max(130, ...bars.map(({ name }) => 7 * name.length + 24));
  const largest = Math.max(1e-9, ...bars.map(({ size }) => Math.abs(size)));
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
        pen.rect(left, y - 8, Math.max(2, (barWidth * Math.abs(size)) / largest), 16, fill, 3);
        labels.forEach((number, k) => {
          const style = { size: 12, fill: MUTED[theme], anchor: "end" } as const;
          pen.text(left + barWidth + labelWidth * (k + 1), y, number, style);
        });
      });
    },
  };
}
