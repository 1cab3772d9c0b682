/** The routes that analyze a trace: comparison, ablation and patching, attribution, attention scores, logit lens. */

import { indexOfLargest } from "../../model/matrix";
import { type LogitAttribution, attributeLogit, attributeScore } from "../inspect/attribution";
import { Comparison } from "../inspect/comparison";
import { Edits } from "../inspect/edits";
import { checkIndex } from "../inspect/indexing";
import { type LinearReadout, followPath } from "../inspect/paths";
import { makeSite } from "../inspect/sites";
import type { Trace } from "../inspect/trace";
import { softmax } from "../model/attentionSteps";
import { range } from "../model/tensor";
import type { Attribution, LensToken, Schemas, WhyResponse } from "../types";
import { UserError } from "../userError";
import { finite } from "./finite";
import { type About, type TextRequest, type TraceCache, chooseBlocks } from "./traceCache";

const MAX_COMPARED = 1024; // tokens
const MAX_SWEPT = 256; // tokens
const MAX_LENS = 128; // rows in one response

/** Compares two texts in one model, or one text in two models: the distance at every site. */
export function compare(
  body: TextRequest & { other: TextRequest; blocks?: readonly number[] | null },
  cache: TraceCache,
): Schemas["CompareResponse"] {
  const sides = [body, body.other].map((text) => ({ text, trace: cache.trace(text) }));
  for (const { trace } of sides) checkLength(trace, MAX_COMPARED);
  const [tokens, otherTokens] = sides.map(({ text, trace }) => cache.tokens(text.model, trace));
  const compared = Comparison.of(sides[0]!.trace, sides[1]!.trace, tokens!, otherTokens!);
  const distances = chooseBlocks(body.blocks, compared.one.config.n_block).flatMap((block) => [
    ...(block === 0 ? compared.distances(null) : []),
    ...compared.distances(block),
  ]);
  return {
    pairs: [...compared.pairs],
    distances: distances.map(({ site, distance }) => ({ site, distance: finite(distance) })),
  };
}

/** Ablates or patches each head or position in turn, and returns a token's log-probability each time. */
export function effects(body: About<"EffectsRequest">, cache: TraceCache): Schemas["EffectsResponse"] {
  const trace = cache.trace(body);
  checkLength(trace, MAX_SWEPT);
  const { config } = trace;
  const token = checkToken(trace, body.token);
  const position = trace.checkPosition(body.position ?? -1);
  const source = body.source == null ? null : cache.trace({ model: body.model, text: body.source });
  if (source && source.length !== trace.length)
    throw new UserError(
      `the other text has ${source.length} tokens and this one ${trace.length}: ` +
        "patching needs the same number in both",
      "texts_differ_in_length",
      { other: source.length, count: trace.length },
    );
  const value = source ? { source } : 0;
  const after = chooseBlocks(body.blocks, config.n_block).map((block) => {
    const variants =
      body.over === "position"
        ? range(trace.length).map((at) => ({ site: makeSite("input", block), at: [at] }))
        : range(config.n_head).map((head) => ({ site: makeSite("output", block, { head }), at: null }));
    return variants.map((variant) =>
      logProbability(trace.withEdits(new Edits([{ ...variant, value, columns: null }])), token, position),
    );
  });
  return { before: logProbability(trace, token, position), after };
}

function logProbability(trace: Trace, token: number, position: number): number | null {
  const logits = trace.read("logits", [position]).values;
  const largest = logits.reduce((most, logit) => Math.max(most, logit), -Infinity);
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - largest), 0);
  return finite(logits[token]! - largest - Math.log(sum));
}

/** Each component's contribution to a token's logit, to the difference of two, or to a part of either. */
export function attribute(body: About<"AttributeRequest">, cache: TraceCache): Attribution {
  const trace = cache.trace(body);
  const [token, position] = [checkToken(trace, body.token), trace.checkPosition(body.position ?? -1)];
  const against = body.against == null ? null : checkToken(trace, body.against);
  const hops = body.through ?? [];
  const readout = followPath(trace, token, position, hops, against);
  const split = hops.length > 0 ? readout.attribution() : attributeLogit(trace, token, position, against);
  const parts = sortParts(split);
  return {
    position: readout.position,
    total: finite(sum(split.values)),
    parts,
    heads: headTokens(readout, parts, body.heads ?? 12),
  };
}

/** The contribution of each token through the first `count` heads among these parts. */
function headTokens(
  readout: LinearReadout,
  parts: readonly Schemas["Part"][],
  count: number,
): Schemas["HeadTokens"][] {
  const heads = parts.flatMap(({ name }) => {
    const match = /^block\.(\d+)\.head\.(\d+)\./.exec(name);
    return match ? [{ block: Number(match[1]), head: Number(match[2]) }] : [];
  });
  const chosen = heads.slice(0, count);
  const tables = new Map(
    [...new Set(chosen.map(({ block }) => block))].map((block) => [block, readout.byPosition(block)]),
  );
  return chosen.map(({ block, head }) => ({
    block,
    head,
    values: Array.from(tables.get(block)!.row(head), finite),
  }));
}

/** Splits an attention score, or the difference of two, into contributions of earlier components. */
export function why(body: About<"WhyRequest">, cache: TraceCache): WhyResponse {
  const trace = cache.trace(body);
  const block = checkIndex(body.block, trace.config.n_block, "block");
  const head = checkIndex(body.head, trace.config.n_head, "head");
  const [query, key] = [trace.checkPosition(body.query_position), trace.checkPosition(body.key_position)];
  const against = body.against_position == null ? null : trace.checkPosition(body.against_position);
  const { names, values } = attributeScore(trace, block, head, query, key, against);
  const ofQuery = names.map((_, i) => sum(values.row(i)));
  const ofKey = names.map((_, j) => sum(names.map((_, i) => values.at(i, j))));
  const order = sortBySize(Array.from(values.values)).slice(0, body.count ?? 20);
  return {
    score: finite(sum(values.values)),
    query: sortParts({ names, values: ofQuery }),
    key: sortParts({ names, values: ofKey }),
    pairs: order.map((at) => ({
      query: names[Math.floor(at / names.length)]!,
      key: names[at % names.length]!,
      value: finite(values.values[at]!),
    })),
  };
}

/** The logit lens: the most likely next token after each block, at each position. */
export function lens(body: About<"LensRequest">, cache: TraceCache): Schemas["LensResponse"] {
  const trace = cache.trace(body);
  const [start, stop] = body.rows ?? [0, trace.length];
  if (!(start >= 0 && start < stop && stop <= trace.length && stop - start <= MAX_LENS))
    throw new UserError(
      `rows ${start} to ${stop}: expected at most ${MAX_LENS} rows within 0 to ${trace.length}`,
    );
  const token = body.token == null ? null : checkToken(trace, body.token);
  const { tokenizer } = cache.model(body.model);
  const blocks = range(trace.config.n_block);
  const columns = range(stop, start).map((row) => {
    const probabilities = softmax(trace.lens(row)); // a row at a time: the vocabulary may be large
    return blocks.map((block): LensToken => {
      const ofBlock = probabilities.row(block);
      const likeliest = indexOfLargest(ofBlock);
      return {
        text: tokenizer.pieces([likeliest])[0]!,
        probability: finite(ofBlock[likeliest]!),
        chosen: token === null ? null : finite(ofBlock[token]!),
      };
    });
  });
  return { tokens: blocks.map((block) => columns.map((column) => column[block]!)) };
}

function checkToken({ config }: Trace, token: number): number {
  return checkIndex(token, config.n_vocab, "token");
}

function checkLength(trace: Trace, most: number): void {
  if (trace.length > most)
    throw new UserError(`the text has ${trace.length} tokens; the limit here is ${most}`, "too_many_tokens", {
      count: trace.length,
      most,
    });
}

/** The parts from the largest absolute value to the smallest. */
function sortParts({ names, values }: LogitAttribution): Schemas["Part"][] {
  return sortBySize(values).map((i) => ({ name: names[i]!, value: finite(values[i]!) }));
}

function sortBySize(values: readonly number[]): number[] {
  return range(values.length).sort((i, j) => Math.abs(values[j]!) - Math.abs(values[i]!));
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
