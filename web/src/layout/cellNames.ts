/** What a site or a single number is called, in words and in Python. */

import type { Config } from "../engine/types";
import type { Messages } from "../messages/en";
import { tokenLabel } from "../messages/format.svelte";
import { hasRawQueries, WEIGHED } from "../model/derivation";
import { type NamedCell, type NotationConfig } from "../model/notation";
import { isOverVocabulary, isSquare, isVector, isWeight, parseSite } from "../model/sites";

/** Such as “masked score” for block.0.head.1.masked. */
export function siteName(words: Messages, name: string, config: NotationConfig): string {
  const { block, head, part } = parseSite(name);
  const names: Record<string, string> = words.sites;
  const end = part.split(".").at(-1)!;
  if (/^(W|W_\w+)$/.test(end)) return words.sites.weight;
  if (/^b_\w+$/.test(end)) return words.sites.bias;
  if (/^(mean|scale|gain|shift)$/.test(end)) return names[end]!;
  if (head !== null && part === "output") return words.cell.headOutput(words.change.head(block!, head));
  if (part.endsWith("_raw") && head !== null && !hasRawQueries(config, block ?? 0))
    return names[part.slice(0, -4)]!;
  return names[part] ?? part;
}

/** Such as “head 0.1 · masked score” for block.0.head.1.masked, “final norm · mean” for final.mean. */
export function placedSiteName(words: Messages, name: string, config: Config): string {
  const { block, head, part } = parseSite(name);
  const norm = /^(\w+)\.(mean|scale)$/.exec(part)?.[1];
  const what = (norm === undefined ? "" : `${words.norms[norm]} · `) + siteName(words, name, config);
  if (block === null || (head !== null && part === "output")) return what;
  const isShared = name.includes("kv_head") && config.n_kv_head < config.n_head;
  const headName = isShared ? words.cell.sharedHead : words.change.head;
  return `${head === null ? words.effects.block(block) : headName(block, head)} · ${what}`;
}

/** Such as “query of ‘it’, dimension 3”. */
export function cellTitle(
  words: Messages,
  cell: NamedCell,
  config: NotationConfig,
  tokens: readonly string[],
  vocabulary: (id: number) => string | undefined,
): string {
  const { name, row, column, query } = cell;
  const { part } = parseSite(name);
  const what = siteName(words, name, config);
  const token = (position: number) => tokenLabel(tokens[position] ?? "");
  if (isWeight(name)) return words.cell.entry(what, isVector(name) ? [row] : [row, column]);
  if (isVector(name)) return words.cell.of(what, token(row));
  if (isSquare(part)) return words.cell.between(what, token(row), token(column));
  if (isOverVocabulary(part)) return words.cell.after(what, vocabulary(column) ?? `${column}`, token(row));
  const place = part.startsWith("hidden") ? words.pointed.neuron : words.pointed.dimension;
  const of = `${words.cell.of(what, token(row))}, ${place(String(column))}`;
  return part === WEIGHED && query !== undefined ? `${of} ${words.cell.attending(token(query))}` : of;
}

/** For each of the opened numbers, its block if it differs from that of the number before; null otherwise. */
export function changedBlocks(start: number, cells: readonly { name: string }[]): (number | null)[] {
  let current: number | null = start;
  return cells.map(({ name }) => {
    const { block } = parseSite(name);
    const isChanged = block !== null && block !== current;
    current = block;
    return isChanged ? block : null;
  });
}

/** The number in Python, such as trace["embedding"][5, 0]. */
export function pythonName({ name, row, column, query }: NamedCell): string {
  const at = isVector(name) ? `[${row}]` : `[${row}, ${column}]`;
  if (isWeight(name)) return `model.weight("${name}")${at}`;
  if (!name.endsWith(`.${WEIGHED}`)) return `trace["${name}"]${at}`;
  const head = name.slice(0, -WEIGHED.length);
  return `trace["${head}weights"][${query ?? -1}, ${row}] * trace["${head}value"]${at}`;
}
