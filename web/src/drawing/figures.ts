/** The page's views as pictures that stand alone: with a title, names, and what the colors say. */

import type { Role } from "../model/sites";
import { textColorOn, colorScale, PALETTES, type Theme } from "./colors";
import { attentionColorRange, type FlowData, paintFlow } from "./flow";
import { type Heading, INNER, OUTER } from "../layout/headings";
import { matrixImage } from "./matrixImage";
import type { Layout } from "../layout/columns";
import { colorRangeOf, paintLegend, UNIT_RANGE } from "./legend";
import { ALL_VISIBLE, applyMask, type Matrix, type VisibleColumns, downsample } from "../model/matrix";
import { short } from "../messages/format.svelte";
import type { Figure } from "./export";

export const INK = { light: "#1d2026", dark: "#eceae4" };
export const QUIET = { light: "#5f6570", dark: "#a4aab5" };

interface Coloring {
  peak?: number | undefined; // what the strongest color stands for
  seen?: VisibleColumns; // what the mask leaves
  said?: (row: number, column: number) => string; // in each cell, instead of its number
}

/** A matrix with the names of its rows and columns, and its numbers where there is room. */
export function matrixFigure(
  given: Matrix,
  names: { row: (row: number) => string; column: (column: number) => string; title: string },
  role: Role,
  theme: Theme,
  { peak, seen = ALL_VISIBLE, said }: Coloring = {},
): Figure {
  const matrix = applyMask(given, seen);
  const ends = colorRangeOf(matrix.values, peak ?? matrix.robustPeak);
  const large = said !== undefined || (matrix.rows <= 64 && matrix.columns <= 64);
  const cell = said === undefined ? 46 : 76;
  const [side, head, foot] = [110, 60, 34];
  const [wide, tall] = large ? [cell * matrix.columns, 24 * matrix.rows] : fitted(matrix);
  const ink = INK[theme];
  return {
    width: Math.max(320, side + wide + 12),
    height: head + tall + 12 + foot,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 18, names.title, { size: 14, fill: ink, weight: 650 });
      paintLegend(pen, side, this.height - foot / 2, ends, role, theme, ink);
      for (const row of thin(matrix.firstRow, matrix.rows, tall, 18)) {
        const y = head + ((row - matrix.firstRow + 0.5) * tall) / matrix.rows;
        pen.text(side - 8, y, names.row(row), { size: 12, fill: ink, anchor: "end" });
      }
      for (const column of thin(matrix.firstColumn, matrix.columns, wide, 46)) {
        const x = side + ((column - matrix.firstColumn + 0.5) * wide) / matrix.columns;
        pen.text(x, head - 12, names.column(column), { size: 11, fill: ink, anchor: "middle" });
      }
      if (!large) {
        const together = Math.max(1, Math.floor(Math.max(matrix.rows, matrix.columns) / LARGEST));
        pen.image(side, head, wide, tall, matrixImage(downsample(matrix, together), role, theme, ends.peak));
        return;
      }
      const scale = colorScale(role, theme);
      matrix.values.forEach((value, i) => {
        const [row, column] = [Math.floor(i / matrix.columns), i % matrix.columns];
        const [x, y] = [side + cell * column, head + 24 * row];
        const color = scale(value, ends.peak);
        pen.rect(x, y, cell - 2, 22, color, 3);
        const letters = textColorOn(color) === "light" ? "#ffffff" : "#000000";
        const fill = Number.isFinite(value) ? letters : QUIET[theme];
        const text = cutOff(said?.(row, column) ?? short(given.values[i]!), 12);
        pen.text(x + cell / 2 - 1, y + 11, text, { size: 11, fill, anchor: "middle" });
      });
    },
  };
}

function cutOff(text: string, letters: number): string {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

const LARGEST = 900; // pixels of a side

/** As large as it may be, its cells squares where they can be seen. */
function fitted({ rows, columns }: Matrix): [number, number] {
  const cell = Math.min(46, LARGEST / Math.max(rows, columns));
  return [Math.max(60, cell * columns), Math.max(60, cell * rows)];
}

/** Some of them, so many pixels apart. */
function thin(first: number, count: number, pixels: number, apart: number): number[] {
  const step = Math.max(1, Math.ceil((apart * count) / pixels - 1e-9));
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => first + i * step);
}

/** The flow with the names of its columns. */
export function flowFigure(
  layout: Layout,
  data: FlowData,
  headings: Heading[],
  { title, block }: { title: string; block: string },
  theme: Theme,
): Figure {
  const [head, foot] = [40, 30];
  const top = layout.top + head;
  const moved = { ...layout, top, height: layout.height + head + foot };
  const ends = attentionColorRange(layout, data);
  return {
    width: moved.width,
    height: moved.height,
    paint(pen) {
      paintFlow(pen, moved, data, theme);
      pen.text(2, 14, title, { size: 14, fill: INK[theme], weight: 650 });
      for (const { column, text, outer = false, role } of headings) {
        const { x, width } = layout.columns[column];
        if (width === 0) continue;
        const fill = outer ? INK[theme] : role ? PALETTES[theme].roles[role].positive : QUIET[theme];
        pen.text(x, top - (outer ? 42 : 14), text, { size: outer ? OUTER : INNER, fill, weight: 620 });
      }
      if (layout.block) {
        const { x, width } = layout.block;
        const fill = PALETTES[theme].roles.attention.positive;
        pen.text(x, top - 42, block, { size: OUTER, fill, weight: 620 });
        pen.frame(x - 12, top - 28, width + 22, layout.height - layout.top + 24, QUIET[theme], 10, 1);
      }
      if (ends) {
        const { x } = layout.columns.attention;
        paintLegend(pen, x, moved.height - 14, ends, "attention", theme, INK[theme]);
      }
    },
  };
}

/** The small pictures of all heads: a tile each, where it stands on the page. */
export function headsFigure(
  tiles: { x: number; y: number; name: string; matrix: Matrix }[],
  side: number,
  title: string,
  theme: Theme,
): Figure {
  const [head, under] = [34, 12];
  const scale = 1 + under / side; // room for a name under each
  const place = ({ x, y }: { x: number; y: number }) => [12 + x, head + y * scale] as const;
  return {
    width: Math.max(360, 24 + Math.max(0, ...tiles.map(({ x }) => x + side))),
    height: head + Math.max(0, ...tiles.map(({ y }) => y * scale + side + under)) + 34,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 16, title, { size: 14, fill: INK[theme], weight: 650 });
      for (const tile of tiles) {
        const [x, y] = place(tile);
        pen.image(x, y, side, side, matrixImage(tile.matrix, "attention", theme, 1));
        const size = Math.min(9, side / 2.4);
        pen.text(x + side / 2, y + side + 6, tile.name, { size, fill: QUIET[theme], anchor: "middle" });
      }
      paintLegend(pen, 12, this.height - 14, UNIT_RANGE, "attention", theme, INK[theme]);
    },
  };
}

export interface Bar {
  name: string;
  size: number;
  told: string[]; // the numbers at its end
}

/** A bar for each, in the color of its sign. */
export function barsFigure(bars: Bar[], title: string, theme: Theme): Figure {
  const [head, tall, wide, column] = [40, 24, 240, 58];
  const side = Math.max(130, ...bars.map(({ name }) => 7 * name.length + 24));
  const most = Math.max(1e-9, ...bars.map(({ size }) => Math.abs(size)));
  const { attention, feedforward } = PALETTES[theme].roles;
  return {
    width: Math.max(8 * title.length + 24, side + wide + column * (bars[0]?.told.length ?? 1) + 14),
    height: head + tall * bars.length + 12,
    paint(pen) {
      pen.rect(0, 0, this.width, this.height, PALETTES[theme].paper);
      pen.text(12, 18, title, { size: 14, fill: INK[theme], weight: 650 });
      bars.forEach(({ name, size, told }, i) => {
        const y = head + (i + 0.5) * tall;
        const weight = i === 0 ? 700 : 420;
        pen.text(side - 10, y, name, { size: 13, fill: INK[theme], anchor: "end", weight });
        const fill = (size < 0 ? feedforward : attention).positive;
        pen.rect(side, y - 8, Math.max(2, (wide * Math.abs(size)) / most), 16, fill, 3);
        told.forEach((number, k) => {
          const style = { size: 12, fill: QUIET[theme], anchor: "end" } as const;
          pen.text(side + wide + column * (k + 1), y, number, style);
        });
      });
    },
  };
}
