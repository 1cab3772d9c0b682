/** Describes one number of a matrix in words. */

import { isOverVocabulary, isSquare } from "../../model/sites";
import type { VisibleColumns } from "../../model/matrix";
import type { Messages } from "../../messages/en";
import { percent, precise } from "../../messages/format.svelte";

export interface DescribedCell {
  part: string; // of the site
  row: number;
  column: number;
  rowName: string;
  columnName: string;
  value: number;
  visible: VisibleColumns;
}

export function describeCell(words: Messages, cell: DescribedCell): string {
  const { part, row, column, rowName: from, columnName: to, value } = cell;
  if (Number.isNaN(value)) return ""; // not loaded yet
  if (!isSquare(part)) return words.pointed.number(from, nameColumn(words, part, to), precise(value));
  const score = words.pointed.score(from, to, precise(value));
  const [first, last] = cell.visible(row);
  if (column >= first && column < last)
    return part === "weights" ? words.looks(from, to, percent(value)) : score;
  const reason = column >= last ? words.pointed.future(from, to) : words.pointed.outside(from, to);
  return part === "scores" || part === "scaled" ? `${score}\n${reason}` : reason;
}

function nameColumn(words: Messages, part: string, name: string): string {
  if (isOverVocabulary(part)) return words.why.token(name);
  if (!/^\d+$/.test(name)) return name;
  return part.startsWith("hidden") ? words.pointed.neuron(name) : words.pointed.dimension(name);
}
