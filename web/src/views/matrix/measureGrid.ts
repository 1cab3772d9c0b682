/** Measures where the fully visible rows and columns of a grid are; null if there are none. */

import type { GridPlaces } from "../../layout/places";

export function measureGrid(box: HTMLElement): GridPlaces | null {
  const names = box.querySelector("[role=columnheader]")?.getBoundingClientRect();
  const side = box.querySelector("[role=rowheader]")?.getBoundingClientRect();
  if (!names || !side) return null;
  const { left, top } = box.getBoundingClientRect();
  const [end, bottom] = [left + box.clientWidth, top + box.clientHeight];
  const columns: GridPlaces["columns"] = new Map();
  const rows: GridPlaces["rows"] = new Map();
  for (const cell of box.querySelectorAll<HTMLElement>("[role=gridcell]")) {
    const [row, column] = [Number(cell.dataset.row), Number(cell.dataset.column)];
    if (columns.has(column) && rows.has(row)) continue;
    const { x, y, width, height } = cell.getBoundingClientRect();
    if (x >= side.right - 1 && x + width <= end + 1) columns.set(column, { x, width });
    if (y >= names.bottom - 1 && y + height <= bottom + 1) rows.set(row, { y, height });
  }
  if (columns.size === 0 || rows.size === 0) return null;
  return { site: box.dataset.site!, columns, rows, headings: { y: names.y, height: names.height }, end };
}
