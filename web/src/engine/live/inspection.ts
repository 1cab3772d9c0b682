/** The routes that return what a model computes over a text: tokens, sites, weights and overviews. */

import { type Matrix, sortColumns } from "../../model/matrix";
import { allSites, isVectorSite, parseSite, siteName, siteShape } from "../inspect/sites";
import type { Trace } from "../inspect/trace";
import { weight } from "../inspect/weights";
import { softmax } from "../model/attentionSteps";
import type { Transformer } from "../model/transformer";
import type { Schemas, TraceResponse } from "../types";
import { UserError } from "../userError";
import { finite } from "./finite";
import { type TextRequest, type TraceCache, chooseBlocks, chooseRange } from "./traceCache";

const MAX_VALUES = 2 ** 24; // in a response: 64 MB

/** Matrices as a response: raw float32 numbers and their shapes. */
export class Matrices {
  constructor(readonly parts: { values: Float32Array; shape: number[] }[]) {}
}

/** The tokens of a text. */
export function tokenize(body: Schemas["TokensRequest"], cache: TraceCache): Schemas["TokensResponse"] {
  const { tokenizer } = cache.model(body.model);
  const ids = tokenizer.encode(body.text);
  return { ids, tokens: tokenizer.pieces(ids) };
}

/** The text of each token id. */
export function spell(body: Schemas["TokenTextsRequest"], cache: TraceCache): Schemas["TokenTextsResponse"] {
  const { tokenizer, network } = cache.model(body.model);
  const largest = Math.max(...body.ids);
  const { n_vocab } = network.config;
  if (largest >= n_vocab)
    throw new UserError(`token ${largest} does not exist: expected an id from 0 to ${n_vocab - 1}`);
  return { tokens: tokenizer.pieces(body.ids) };
}

/** The most likely next tokens, and the sites that can be requested. */
export function traceText(
  body: TextRequest & { count?: number; sites?: boolean },
  cache: TraceCache,
): TraceResponse {
  const trace = cache.trace(body);
  const { tokenizer } = cache.model(body.model);
  const logits = trace.read("logits", [trace.length - 1]);
  const probabilities = softmax(logits).values;
  const best = sortColumns(logits.values).slice(0, body.count ?? 10);
  const texts = tokenizer.pieces(best);
  const { config } = trace;
  return {
    ids: [...trace.ids],
    text: tokenizer.decode([...trace.ids]),
    tokens: cache.tokens(body.model, trace),
    next: best.map((id, i) => ({
      id,
      text: texts[i]!,
      logit: finite(logits.values[id]!),
      probability: finite(probabilities[id]!),
    })),
    sites: (body.sites === false ? [] : allSites(config)).map((site) => ({
      name: siteName(site),
      shape: siteShape(site, config, trace.length),
    })),
  };
}

/** Several slices of sites and weights. */
export function readSites(
  body: TextRequest & Pick<Schemas["SitesRequest"], "reads">,
  cache: TraceCache,
): Matrices {
  const trace = cache.trace(body);
  // Every read is checked before any of them is computed.
  const reads = body.reads.map((read) => prepare(read, trace));
  const count = reads.reduce((sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1), 0);
  if (count > MAX_VALUES)
    throw new UserError(
      `the response would have ${count} numbers; the limit is ${MAX_VALUES}: request a slice`,
      "too_large",
    );
  return new Matrices(reads.map(({ shape, read }) => ({ shape, values: read().values })));
}

interface Prepared {
  shape: number[];
  read: () => Matrix;
}

function prepare(read: Schemas["SliceRead"], trace: Trace): Prepared {
  const { site, weight: name } = read;
  if ((site == null) === (name == null)) throw new UserError("each read needs either a site or a weight");
  return site != null ? prepareSite(site, read, trace) : prepareWeight(name!, read, trace.network);
}

function prepareSite(name: string, read: Schemas["SliceRead"], trace: Trace): Prepared {
  const site = parseSite(name, trace.config);
  const { rows, columns, shape } = parseSlice(read, siteShape(site, trace.config, trace.length));
  const wanted = isVectorSite(site) ? undefined : columns;
  return { shape, read: () => trace.read(name, rows, wanted) };
}

function prepareWeight(name: string, read: Schemas["SliceRead"], network: Transformer): Prepared {
  const named = weight(network, name);
  const { rows, columns, shape } = parseSlice(read, named.shape);
  return { shape, read: () => named.read(rows, columns) };
}

function parseSlice(read: Schemas["SliceRead"], shape: number[]) {
  const rows = chooseRange(read.rows, shape[0]!, "rows") ?? undefined;
  if (shape.length === 1 && read.columns)
    throw new UserError("columns were given for a vector: expected rows only");
  const columns =
    shape.length > 1 ? (chooseRange(read.columns, shape[1]!, "columns") ?? undefined) : undefined;
  const sizes = [rows?.length ?? shape[0]!, columns?.length ?? shape[1]!].slice(0, shape.length);
  return { rows, columns, shape: sizes };
}

/** The pooled attention weights, blocks × heads × cells × cells; each row of cells sums to 1. */
export function readPatterns(
  body: TextRequest & { blocks?: readonly number[] | null; cells?: number },
  cache: TraceCache,
): Matrices {
  const trace = cache.trace(body);
  const { n_block, n_head } = trace.config;
  const size = Math.ceil(trace.length / (body.cells ?? 24));
  const side = Math.ceil(trace.length / size);
  const blocks = chooseBlocks(body.blocks, n_block);
  const values = new Float32Array(blocks.length * n_head * side * side);
  blocks.forEach((block, i) => {
    for (let head = 0; head < n_head; head++) {
      const weights = trace.read(`block.${block}.head.${head}.weights`);
      values.set(poolWeights(weights, size, side), (i * n_head + head) * side * side);
    }
  });
  return new Matrices([{ values, shape: [blocks.length, n_head, side, side] }]);
}

/** For each cell, the weight that a row puts on the cell's columns, averaged over its rows: T T → N N. */
function poolWeights(weights: Matrix, size: number, side: number): Float32Array {
  const pooled = new Float64Array(side * side);
  for (let i = 0, at = 0; i < weights.rows; i++)
    for (let j = 0; j < weights.columns; j++) {
      const cell = Math.floor(i / size) * side + Math.floor(j / size);
      pooled[cell] = pooled[cell]! + weights.values[at++]!;
    }
  return Float32Array.from(pooled, (sum, cell) => {
    const first = Math.floor(cell / side) * size;
    return sum / Math.min(size, weights.rows - first);
  });
}

/** Blocks × 3 × tokens: the norms of a block's input, its attention output and its feed-forward output. */
export function readStreams(body: TextRequest, cache: TraceCache): Matrices {
  const { stream, config, length: T } = cache.trace(body);
  const values = new Float32Array(config.n_block * 3 * T);
  stream.inputs.forEach((x, i) => {
    const [middle, output] = [stream.middles[i]!, stream.inputs[i + 1] ?? stream.last];
    values.set(distances(x, null), (3 * i + 0) * T);
    values.set(distances(middle, x), (3 * i + 1) * T);
    values.set(distances(output, middle), (3 * i + 2) * T);
  });
  return new Matrices([{ values, shape: [config.n_block, 3, T] }]);
}

/** ‖x - y‖ of each row. */
function distances(x: Matrix, y: Matrix | null): Float32Array {
  const norms = new Float32Array(x.rows);
  for (let i = 0, at = 0; i < x.rows; i++) {
    let sum = 0;
    for (let j = 0; j < x.columns; j++, at++) sum += (x.values[at]! - (y ? y.values[at]! : 0)) ** 2;
    norms[i] = Math.sqrt(sum);
  }
  return norms;
}
