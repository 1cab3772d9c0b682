/** Sites: the names of the values that can be read or edited. */

import type { Config } from "../types";
import { UserError } from "../userError";
import { hasCap } from "../model/attentionSteps";
import { isGated } from "../model/feedforward";
import { range } from "../model/tensor";

const SHARED = ["key", "value"];
// The lectures' symbols, accepted in place of the names.
const BLOCK_SYMBOLS: Record<string, string> = {
  x: "input",
  t1: "normed",
  t2: "attention",
  t3: "middle",
  t4: "normed2",
  t5: "feedforward",
  h: "output",
};
const HEAD_SYMBOLS: Record<string, string> = {
  q: "query",
  k: "key",
  v: "value",
  alpha: "weights",
  a: "mixed",
};
/** T T: a row per query position, a column per key position. */
export const MATRICES = ["scores", "scaled", "capped", "masked", "weights"];

/** A point in the computation: outside the blocks, in a block, in a head, or in a key-value head. */
export interface Site {
  readonly name: string;
  readonly block: number | null;
  readonly head: number | null;
  readonly kvHead: number | null;
}

type Place = { head?: number | null; kvHead?: number | null };

export function makeSite(name: string, block: number | null = null, place: Place = {}): Site {
  return { name, block, head: place.head ?? null, kvHead: place.kvHead ?? null };
}

export function siteName({ name, block, head, kvHead }: Site): string {
  const part = (kind: string, number: number | null) => (number === null ? "" : `${kind}.${number}.`);
  return part("block", block) + part("head", head) + part("kv_head", kvHead) + name;
}

export function isSameSite(one: Site, other: Site): boolean {
  return (
    one.name === other.name &&
    one.block === other.block &&
    one.head === other.head &&
    one.kvHead === other.kvHead
  );
}

/** Whether a site has one number per position. */
export function isVectorSite({ name }: Site): boolean {
  return name.endsWith(".mean") || name.endsWith(".scale");
}

export function endNames(config: Config): string[] {
  const place = addsPositions(config) ? ["position"] : [];
  const raw = hasCap(config.logit_cap) ? ["logits_raw"] : [];
  return ["embedding", ...place, "final", ...normNames("final", config), ...raw, "logits", "probabilities"];
}

/** Whether position vectors are added to the token vectors. */
export function addsPositions({ position }: Config): boolean {
  return position === "learned" || position === "sinusoidal";
}

export function blockNames(config: Config): string[] {
  const hidden = isGated(config) ? ["hidden_gate", "hidden_up"] : ["hidden_raw"];
  const first = ["input", ...normedNames("normed", config), ...addedNames("attention", config)];
  const middle = config.parallel ? [] : ["middle"];
  const second = [...normedNames("normed2", config), ...hidden, "hidden"];
  return [...first, ...middle, ...second, ...addedNames("feedforward", config), "output"];
}

export function headNames({ qk_norm, score_cap }: Config): string[] {
  const normed = qk_norm ? ["query_normed", "key_normed"] : [];
  const matrices = MATRICES.filter((name) => name !== "capped" || hasCap(score_cap));
  return ["query_raw", "key_raw", ...normed, "query", "key", "value", ...matrices, "mixed", "output"];
}

/** The site of the logits as the unembedding computes them, which is before a cap. */
export function unembedded({ logit_cap }: Config): Site {
  return makeSite(hasCap(logit_cap) ? "logits_raw" : "logits");
}

/** The input of one half of a block, which without a pre-norm is that of the block or the middle. */
function normedNames(name: string, config: Config): string[] {
  return config.pre_norm ? [name, ...normNames(name, config)] : [name];
}

/** The output of one half of a block and, with a post-norm, its normalized value. */
function addedNames(name: string, config: Config): string[] {
  const normed = `${name}_normed`;
  return config.post_norm ? [name, normed, ...normNames(normed, config)] : [name];
}

/** μ and σ, one number per position; RMSNorm has no μ. */
function normNames(name: string, { norm }: Config): string[] {
  return norm === "layer" ? [`${name}.mean`, `${name}.scale`] : [`${name}.scale`];
}

/** Every site of a model, block by block: those of the block itself, then those of its heads. */
export function allSites(config: Config): Site[] {
  const ends = endNames(config).map((name) => makeSite(name));
  const isStart = ({ name }: Site) => name === "embedding" || name === "position";
  const inBlocks = range(config.n_block).flatMap((i) => [
    ...blockNames(config).map((name) => makeSite(name, i)),
    ...range(config.n_kv_head).flatMap((kvHead) => SHARED.map((name) => makeSite(name, i, { kvHead }))),
    ...range(config.n_head).flatMap((head) => headNames(config).map((name) => makeSite(name, i, { head }))),
  ]);
  return [...ends.filter(isStart), ...inBlocks, ...ends.filter((site) => !isStart(site))];
}

const SITE = /^(?:block\.(-?\d+)\.(?:head\.(-?\d+)\.|kv_head\.(-?\d+)\.)?)?([a-z_0-9]+(?:\.[a-z]+)?)$/;

/** Parses a site name; the error for an unknown one lists the valid names. */
export function parseSite(text: string, config: Config): Site {
  const refuse = (message: string) =>
    new UserError(`site '${text}'${message}`, "site_unknown", { site: text });
  const match = SITE.exec(text);
  if (!match) throw refuse(": expected a name such as block.0.head.0.weights, block.0.input or logits");
  const [block, head, kvHead] = match.slice(1, 4).map((part) => (part === undefined ? null : Number(part)));
  for (const [kind, number, count] of [
    ["block", block, config.n_block],
    ["head", head, config.n_head],
    ["kv_head", kvHead, config.n_kv_head],
  ] as const)
    if (number != null && !(number >= 0 && number < count))
      throw refuse(`: this model has ${kind}s 0 to ${count - 1}`);
  const names = namesAt(config, block!, head!, kvHead!);
  const given = match[4]!;
  const inHead = head !== null || kvHead !== null;
  const name = names.includes(given) || block === null ? given : nameOfSymbol(given, config, inHead);
  if (!names.includes(name)) {
    const others = block === null ? ", or one in a block or head, such as block.0.head.0.weights" : "";
    throw refuse(` does not exist: expected ${names.join(", ")}${others}`);
  }
  return makeSite(name, block!, { head: head!, kvHead: kvHead! });
}

function namesAt(config: Config, block: number | null, head: number | null, kvHead: number | null): string[] {
  if (head !== null) return headNames(config);
  if (kvHead !== null) return SHARED;
  return block === null ? endNames(config) : blockNames(config);
}

/** The site name that one of the lectures' symbols stands for; any other name is returned unchanged. */
function nameOfSymbol(symbol: string, config: Config, inHead: boolean): string {
  if (inHead) return HEAD_SYMBOLS[symbol] ?? symbol;
  const name = BLOCK_SYMBOLS[symbol] ?? symbol;
  return config.post_norm && (symbol === "t2" || symbol === "t5") ? `${name}_normed` : name;
}

/** The shape of a site's value for a text of `length` tokens. */
export function siteShape(site: Site, config: Config, length: number): [number] | [number, number] {
  if (isVectorSite(site)) return [length];
  if (site.head !== null || site.kvHead !== null) {
    if (MATRICES.includes(site.name)) return [length, length];
    return [length, site.name === "output" ? config.d_model : config.d_head];
  }
  if (["logits_raw", "logits", "probabilities"].includes(site.name)) return [length, config.n_vocab];
  return [length, site.name.startsWith("hidden") ? config.d_hidden : config.d_model];
}
