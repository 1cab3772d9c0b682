/** What a view of a matrix is given, whether it shows numbers or a map. */

import type { Cell, Span } from "../../model/sites";
import type { Role, Theme } from "../../drawing/colors";
import type { Ends } from "../../drawing/legend";
import type { Matrix, Seen } from "../../model/matrix";

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
  seen: Seen; // what the mask leaves
  onpoint: (cell: Cell | null) => void;
  onopen: (cell: Cell) => void;
  onends?: (ends: Ends) => void; // what the colours stand for now
}
