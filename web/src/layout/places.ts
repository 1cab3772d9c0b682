/** Rectangles on the screen, and where the cells of a matrix are. */

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** A matrix on the screen: where its visible columns and rows are. */
export interface GridPlaces {
  site: string;
  columns: Map<number, { x: number; width: number }>;
  rows: Map<number, { y: number; height: number }>;
  headings: { y: number; height: number };
  end: number; // x where it ends
}

export function cell(grid: GridPlaces, row: number, column: number): Rect | null {
  const [across, down] = [grid.columns.get(column), grid.rows.get(row)];
  return across && down ? { ...across, ...down } : null;
}

/** The rectangle of neighboring cells of a row. */
export function span(grid: GridPlaces, row: number, columns: number[]): Rect | null {
  const cells = columns.flatMap((column) => cell(grid, row, column) ?? []);
  return cells.length > 0 ? union(cells) : null;
}

export function heading(grid: GridPlaces, column: number): Rect | null {
  const across = grid.columns.get(column);
  return across ? { ...across, ...grid.headings } : null;
}

export function union(rects: Rect[]): Rect {
  const [x, y] = [Math.min(...rects.map((r) => r.x)), Math.min(...rects.map((r) => r.y))];
  const end = Math.max(...rects.map((r) => r.x + r.width));
  const bottom = Math.max(...rects.map((r) => r.y + r.height));
  return { x, y, width: end - x, height: bottom - y };
}

/** A rectangle moved to the center of another. */
export function centered(rect: Rect, on: Rect): Rect {
  return { ...rect, x: on.x + (on.width - rect.width) / 2, y: on.y + (on.height - rect.height) / 2 };
}

export function scale(rect: Rect, by: number): Rect {
  return centered({ ...rect, width: rect.width * by, height: rect.height * by }, rect);
}

export function grow({ x, y, width, height }: Rect, by: number): Rect {
  return { x: x - by, y: y - by, width: width + 2 * by, height: height + 2 * by };
}

/** The rectangle of the same size to the left. */
export function beside(rect: Rect): Rect {
  return { ...rect, x: rect.x - rect.width };
}
