/** The props of both views of a matrix, as a grid and as a map. */

import type { Cell, Role, Span } from "../../model/sites";
import type { Theme } from "../../drawing/colors";
import type { ColorRange } from "../../drawing/legend";
import type { Matrix, VisibleColumns } from "../../model/matrix";
import type { Messages } from "../../messages/en";

export interface MatrixProps {
  words: Messages;
  name: string; // of the site
  label: string;
  rows: number;
  columns: number;
  rowName: (row: number) => string;
  columnName: (column: number) => string;
  read: (rows: Span, columns: Span) => Matrix | undefined;
  role: Role;
  theme: Theme;
  peak: number | undefined; // the number with the strongest color; undefined for a robust maximum
  selectedRow: number;
  height?: number | undefined; // pixels on screen; undefined for the usual height
  visible: VisibleColumns; // the rest is masked
  queryName?: string | undefined; // the token that attends to the rows, where rows are keys
  describe?: (cell: Cell, value: number) => string; // the tooltip, instead of the usual one
  onpoint: (cell: Cell | null) => void;
  onopen: (cell: Cell) => void;
  onrange?: (range: ColorRange) => void; // reports the current color range
}
