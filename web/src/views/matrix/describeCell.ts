/** Describes one number in a matrix in words. */

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
  queryName?: string | undefined; // of the token that attends to the row, if rows are keys
  visible: VisibleColumns;
}

export function describeCell(words: Messages, cell: DescribedCell): string {
  const { part, row, column, rowName: from, columnName: to, value } = cell;
  if (Number.isNaN(value)) return ""; // not loaded yet
  const [first, last] = cell.visible(row);
  const isMasked = column < first || column >= last;
  if (isMasked && cell.queryName !== undefined) return words.pointed.unattended(cell.queryName, from);
  if (!isSquare(part)) return words.pointed.number(from, nameColumn(words, part, to), precise(value));
  const names: Record<string, string> = words.sites;
  const name = names[part] ?? part;
  const score = words.pointed.score(name[0]!.toUpperCase() + name.slice(1), from, to, precise(value));
  if (!isMasked) return part === "weights" ? words.looks(from, to, percent(value)) : score;
  const reason = column >= last ? words.pointed.future(from, to) : words.pointed.outside(from, to);
  return ["scores", "scaled", "capped"].includes(part) ? `${score}\n${reason}` : reason;
}

function nameColumn(words: Messages, part: string, name: string): string {
  if (isOverVocabulary(part)) return words.why.token(name);
  if (!/^\d+$/.test(name)) return name;
  return part.startsWith("hidden") ? words.pointed.neuron(name) : words.pointed.dimension(name);
}
