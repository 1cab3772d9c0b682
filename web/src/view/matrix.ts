/** What a view of a matrix is given, whether it shows numbers or a map. */

import type { Cell, Span } from "../cells";
import type { Role, Theme } from "../colours";
import type { Matrix } from "../matrix";

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
  peak: number | undefined; // what the strongest colour stands for; what few exceed unless said
  followed: number;
  onpoint: (cell: Cell | null) => void;
  onopen: (cell: Cell) => void;
}
