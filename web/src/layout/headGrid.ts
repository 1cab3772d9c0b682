/** The layout of all heads' attention patterns: one row per block, or as many patterns per row as fit. */

export const GAP = 6; // pixels between patterns
export const NAMED_SIDE = 40; // smaller patterns have no room for a name
export const FRAME = 1; // pixels around the cells of a pattern
export const MARGIN = 58; // left of the blocks, for their names
const [MIN_SIDE, MAX_SIDE] = [18, 240]; // side of a pattern, in pixels
const MAX_STRETCH = 1.8; // a pattern is at most this much wider than tall
const TOP = 18; // above the blocks, for the names of the heads
const CAPTION = 15; // below a sorted pattern: its name and score
const [SCORED_SIDE, SMALL_CAPTION] = [24, 12]; // a smaller pattern has room for its score alone
const MAX_BANDS = 6;

export interface HeadGrid {
  side: number; // height of a pattern
  width: number; // of a pattern
  columns: number; // patterns per row of a band
  rows: number; // per band
  bandWidth: number; // from one band to the next; bands are side by side
  left: number; // where the patterns of a band begin
  top: number;
  caption: number; // height of the name below each pattern
}

/**
 * One row per block, with patterns as large as the screen allows: wider than tall if there is room. If many blocks
 * would make them too small for a name, the blocks continue in further bands to the right. Null if the heads of a
 * block do not fit side by side.
 */
export function blockGrid(blocks: number, heads: number, width: number, height: number): HeadGrid | null {
  if (MARGIN + heads * (MIN_SIDE + GAP) > width) return null;
  const sideWith = (bands: number) =>
    Math.floor(
      Math.min(
        MAX_SIDE,
        (width / bands - MARGIN) / heads - GAP,
        (height - TOP) / Math.ceil(blocks / bands) - GAP,
      ),
    );
  let bands = 1;
  for (let more = 2; more <= MAX_BANDS && sideWith(1) < NAMED_SIDE; more++)
    if (sideWith(more) > sideWith(bands)) bands = more;
  const side = Math.max(MIN_SIDE, sideWith(bands));
  const rows = Math.ceil(blocks / bands);
  const bandWidth = bands === 1 ? width : MARGIN + heads * (side + GAP) + GAP;
  const widest = bands === 1 ? Math.floor((width - MARGIN) / heads - GAP) : side;
  const patternWidth = Math.max(side, Math.min(Math.floor(MAX_STRETCH * side), widest));
  return { side, width: patternWidth, columns: heads, rows, bandWidth, left: MARGIN, top: TOP, caption: 0 };
}

/** `count` patterns in rows from left to right, as large as the screen allows. */
export function sortedGrid(count: number, width: number, height: number): HeadGrid {
  for (let side = MAX_SIDE; ; side -= 2) {
    const columns = Math.max(1, Math.floor((width + GAP) / (side + GAP)));
    const rows = Math.ceil(count / columns);
    const caption = side >= NAMED_SIDE ? CAPTION : side >= SCORED_SIDE ? SMALL_CAPTION : 0;
    const fits = rows * (side + caption + GAP) <= height;
    if (fits || side <= MIN_SIDE)
      return { side, width: side, columns, rows, bandWidth: width, left: 0, top: 0, caption };
  }
}

/** The height of a row. */
export function pitchOf({ side, caption }: HeadGrid): number {
  return side + caption + GAP;
}

/** The top left corner of a pattern. */
export function patternPosition(grid: HeadGrid, number: number): [number, number] {
  const [row, column] = [Math.floor(number / grid.columns), number % grid.columns];
  return [
    Math.floor(row / grid.rows) * grid.bandWidth + grid.left + column * (grid.width + GAP),
    grid.top + (row % grid.rows) * pitchOf(grid),
  ];
}

/** The row and column of the pattern's cell at a point, if it has `cells` of them per side; null outside. */
export function patternCellAt(
  grid: HeadGrid,
  number: number,
  x: number,
  y: number,
  cells: number,
): [number, number] | null {
  const [left, top] = patternPosition(grid, number);
  const cellAt = (offset: number, size: number) =>
    Math.floor(((offset - FRAME) * cells) / (size - 2 * FRAME));
  const [row, column] = [cellAt(y - top, grid.side), cellAt(x - left, grid.width)];
  const isInside = row >= 0 && row < cells && column >= 0 && column < cells;
  return isInside ? [row, column] : null;
}

/** The pattern at a point; null if there is none among the first `count`. */
export function patternAt(grid: HeadGrid, x: number, y: number, count: number): number | null {
  const band = Math.floor(x / grid.bandWidth);
  const column = Math.floor((x - band * grid.bandWidth - grid.left) / (grid.width + GAP));
  const row = Math.floor((y - grid.top) / pitchOf(grid));
  const isInside = band >= 0 && column >= 0 && column < grid.columns && row >= 0 && row < grid.rows;
  const number = (band * grid.rows + row) * grid.columns + column;
  return isInside && number < count ? number : null;
}
