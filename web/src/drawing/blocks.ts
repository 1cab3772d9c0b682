/** What each block did at each token: how much attention and feed-forward added, and what the logit lens reads. */

import { type Layout, rowY } from "../layout/columns";
import { tokenLabel } from "../messages/format.svelte";
import type { Matrix } from "../model/matrix";
import { PALETTES, type Theme } from "./colors";
import { abbreviate, estimateWidth } from "./labels";
import type { Pen } from "./pen";

/** The norms of what a block adds to the residual stream at a token, relative to the norm of its input. */
export interface Update {
  attention: number;
  feedforward: number;
}

/** `norms` has three rows: the norms of the block's input, attention output and feed-forward output. */
export function updateAt(norms: Matrix, row: number): Update {
  const input = norms.at(0, row);
  return { attention: norms.at(1, row) / input, feedforward: norms.at(2, row) / input };
}

/** The width of an update's bar, 0 to 1: half for an update as long as the input, however long the others are. */
export function barWidth(update: number): number {
  return update / (1 + update);
}

const MIN_LABEL = 22; // pixels: narrower cells have no label
const LABEL_SIZE = 11;

/** For each block and token, one bar for attention and one for feed-forward. Frames the current block. */
export function paintBlocks(
  pen: Pen,
  layout: Layout,
  data: {
    streams: Matrix[];
    block: number;
    pointed?: { row: number; block: number | null } | null;
    lens: string[];
  },
  rows: number[],
  theme: Theme,
): void {
  const { blocks } = layout.columns;
  const count = data.streams.length;
  if (count === 0 || blocks.width === 0) return;
  const { paper, empty, roles } = PALETTES[theme];
  const width = blocks.width / count;
  const height = Math.min(layout.rowHeight - 2, 14);
  const space = Math.max(1, width - (width > 8 ? 4 : 1));
  for (const row of rows)
    pen.rect(blocks.x - 0.5, rowY(layout, row) - height / 2, blocks.width, height, paper);
  data.streams.forEach((norms, block) => {
    const x = blocks.x + block * width;
    for (const row of rows) {
      const { attention, feedforward } = updateAt(norms, row);
      const y = rowY(layout, row);
      const half = height / 2 - 0.5;
      pen.rect(x, y - half, space, 2 * half, empty);
      pen.rect(x, y - half, space * barWidth(attention), half - 0.5, roles.attention.positive);
      pen.rect(x, y + 0.5, space * barWidth(feedforward), half - 0.5, roles.feedforward.positive);
    }
  });
  if (width >= MIN_LABEL) paintLens(pen, layout, data.lens, width, theme);
  const frame = theme === "light" ? "#7a49d0" : "#b797ff";
  const y = rowY(layout, rows[0]!) - layout.rowHeight / 2;
  pen.frame(blocks.x + data.block * width - 3, y, width, layout.rowHeight * rows.length, frame, 3, 1.5);
  const { pointed } = data;
  if (pointed?.block == null) return;
  const ink = theme === "light" ? "#1d2026" : "#eceae4";
  const top = rowY(layout, pointed.row) - height / 2 - 1;
  pen.frame(blocks.x + pointed.block * width - 2, top, width - 1, height + 2, ink, 2, 1.75);
}

/** The token that the logit lens reads after each block, above the block's bars. */
function paintLens(pen: Pen, layout: Layout, lens: string[], width: number, theme: Theme): void {
  const fill = theme === "light" ? "#5f6570" : "#a4aab5";
  const [room, measure] = [width - 3, (text: string) => estimateWidth(text, LABEL_SIZE)];
  lens.forEach((token, block) => {
    const name = tokenLabel(token);
    // In a narrow cell, the letters say more than the sign for the space before them.
    const label = abbreviate(measure(name) > room ? name.replace(/^␣(?=.)/, "") : name, room, measure);
    const style = { size: LABEL_SIZE, fill, weight: block === lens.length - 1 ? 700 : 420 };
    pen.text(layout.columns.blocks.x + block * width, layout.top - 12, label, style);
  });
}
