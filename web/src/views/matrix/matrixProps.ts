/** What a view of a matrix is given, whether it shows numbers or a map. */

import type { Cell, Role, Span } from "../../model/sites";
import type { Theme } from "../../drawing/colors";
import type { ColorRange } from "../../drawing/legend";
import type { Matrix, VisibleColumns } from "../../model/matrix";

export interface MatrixProps {
  name: string; // of the site
  label: string;
  rows: number;
  columns: number;
  rowName: (row: number) => string;
  columnName: (column: number) => string;
  read: (rows: Span, columns: Span) => Matrix | undefined;
  role: Role;
  theme: Theme;
  peak: number | undefined; // what the strongest color stands for; what few exceed unless said
  followed: number;
  seen: VisibleColumns; // what the mask leaves
  onpoint: (cell: Cell | null) => void;
  onopen: (cell: Cell) => void;
  onends?: (ends: ColorRange) => void; // what the colors stand for now
}
