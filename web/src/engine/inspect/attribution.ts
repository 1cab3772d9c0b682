/** Exact attributions: what contributes to a token's logit, and what contributes to an attention score.
 *
 * The residual stream is the sum of what every component wrote into it. With the scales of the norms treated as
 * constants, a logit or a score is linear in the stream, so it splits into one part per component. Shapes: N parts,
 * C features of the stream, D features per head.
 */

import { Matrix } from "../../model/matrix";
import type { Norm } from "../model/norm";
import type { Linear } from "../model/parameters";
import { rotate } from "../model/position";
import { dot, range, takeRows, zeros } from "../model/tensor";
import { UserError } from "../userError";
import { addsPositions, makeSite, unembedded } from "./sites";
import type { Trace } from "./trace";

export const EDITS = "edits"; // the part contributed by edits

/** The contributions of all components, which sum to a logit or to the difference between two logits. */
export interface LogitAttribution {
  names: string[];
  values: number[];
}

/** A score q·k decomposed by what each component wrote at the query position and at the key position. */
export interface ScoreAttribution {
  names: string[];
  values: Matrix; // N N: rows for the query side, columns for the key side
}

/** Vectors with names: one row per part. */
interface Parts {
  names: string[];
  rows: Float32Array[];
}

/** Decomposes a token's logit at a position, before a cap, minus that of `against` if given, into one part per component. */
export function attributeLogit(
  trace: Trace,
  token: number,
  position: number,
  against: number | null = null,
): LogitAttribution {
  const scale = trace.read("final.scale", [position]).values[0]!;
  let parts = throughNorm(trace.network.finalNorm, written(trace, position), scale, "final.shift");
  if (trace.edits.of(null).made.length > 0) parts = withEdits(parts, trace.read("final", [position]).values);
  const direction = logitDirection(trace, token, against);
  let { names } = parts;
  let values = parts.rows.map((row) => dot(row, direction));
  if (trace.edits.touch(unembedded(trace.config))) {
    const rows = values.map((value) => Float32Array.of(value));
    const logit = Float32Array.of(readLogit(trace, token, position, against));
    ({ names, rows: parts.rows } = withEdits({ names, rows }, logit));
    values = parts.rows.map(([value]) => value!);
  }
  return { names, values };
}

/** The direction whose dot product with the normalized stream is a logit or a difference of logits: C. */
export function logitDirection(trace: Trace, token: number, against: number | null): Float32Array {
  const { weight } = trace.network.unembedding;
  const own = weight.row(token);
  return against === null ? own : subtract(own, weight.row(against));
}

/** A token's logit at a position, before a cap, minus that of `against` if given. */
export function readLogit(trace: Trace, token: number, position: number, against: number | null): number {
  const logits = trace.read(unembedded(trace.config).name, [position]).values;
  return logits[token]! - (against === null ? 0 : logits[against]!);
}

/** Decomposes a head's score between two positions by what each component wrote before the head's block; with
 * `against`, its difference from the score of another key position. */
export function attributeScore(
  trace: Trace,
  block: number,
  head: number,
  queryPosition: number,
  keyPosition: number,
  against: number | null = null,
): ScoreAttribution {
  if (trace.edits.touch(makeSite("scores", block, { head })))
    throw new UserError(
      `block.${block}.head.${head}.scores is edited: an edited score is not a sum of parts`,
    );
  const query = attributeSide(trace, block, head, queryPosition, "query");
  const key = attributeSide(trace, block, head, keyPosition, "key");
  if (against !== null) {
    const other = attributeSide(trace, block, head, against, "key");
    key.rows = key.rows.map((row, i) => subtract(row, other.rows[i]!));
  }
  const N = query.rows.length;
  const values = zeros(N, N);
  query.rows.forEach((one, i) =>
    key.rows.forEach((other, j) => (values.values[i * N + j] = dot(one, other))),
  );
  return { names: key.names, values };
}

/** The parts of a query or a key: N D. */
function attributeSide(
  trace: Trace,
  block: number,
  head: number,
  position: number,
  name: "query" | "key",
): Parts {
  const { config, network } = trace;
  const { attention, norm } = network.blocks[block]!;
  const shared = Math.floor(head / (config.n_head / config.n_kv_head));
  const read = (site: string) => trace.read(`block.${block}.${site}`, [position]).values;
  // After each step, what the edits changed becomes a separate part.
  const edited = trace.edits.of(block).made.length > 0;
  const check = (parts: Parts, site: string) => (edited ? withEdits(parts, read(site)) : parts);
  let parts = check(written(trace, position, block), "input");
  if (norm) parts = throughNorm(norm, parts, read("normed.scale")[0]!, "shift");
  parts = check(parts, "normed");
  parts = throughLinear(attention[name], name === "query" ? head : shared, config.d_head, parts);
  parts = check(parts, `head.${head}.${name}_raw`);
  const headNorm = name === "query" ? attention.queryNorm : attention.keyNorm;
  if (headNorm && config.qk_norm_joint) {
    const own = headNorm.ofFeatures((name === "query" ? head : shared) * config.d_head, config.d_head);
    parts = throughNorm(own, parts, trace.steps(block).jointScale(name).values[position]!, "");
  } else if (headNorm) {
    const raw = new Matrix(read(`head.${head}.${name}_raw`), 1, config.d_head);
    parts = throughNorm(headNorm, parts, headNorm.scale(raw).values[0]!, "head shift");
  }
  const rotation = trace.rotations[block];
  if (rotation) {
    const [cos, sin] = [takeRows(rotation.cos, [position]), takeRows(rotation.sin, [position])];
    parts.rows = parts.rows.map(
      (row) => rotate(new Matrix(row, 1, row.length), { cos, sin }, config.d_head).values,
    );
  }
  return check(parts, `head.${head}.${name}`);
}

/** Attributes the difference between the actual value and the sum of the parts to the edits. */
function withEdits({ names, rows }: Parts, actual: Float32Array): Parts {
  const missing = subtract(actual, sumOf(rows, actual.length));
  const at = names.indexOf(EDITS);
  if (at < 0) return { names: [...names, EDITS], rows: [...rows, missing] };
  return { names, rows: rows.with(at, addTo(rows[at]!, missing)) };
}

/** What each component wrote at a position before a block, by name; the sum is the residual stream. */
export function written(trace: Trace, position: number, until = trace.config.n_block): Parts {
  const parts: Parts = { names: ["embedding"], rows: [trace.read("embedding", [position]).values] };
  if (addsPositions(trace.config)) append(parts, "position", trace.read("position", [position]).values);
  for (let i = 0; i < until; i++)
    for (const half of [attentionParts(trace, i, position), feedforwardParts(trace, i, position)]) {
      parts.names.push(...half.names);
      parts.rows.push(...half.rows);
    }
  if (trace.edits.made.length > 0) {
    const stream = (trace.stream.inputs[until] ?? trace.stream.last).row(position);
    append(parts, EDITS, subtract(stream, sumOf(parts.rows, stream.length)));
  }
  return parts;
}

function attentionParts(trace: Trace, i: number, position: number): Parts {
  const parts: Parts = { names: [], rows: [] };
  const steps = trace.steps(i);
  const edited = trace.edits.of(i).made.length > 0;
  for (const head of range(trace.config.n_head)) {
    const { output } = edited ? steps.head(head) : steps.head(head, [position]);
    append(parts, `block.${i}.head.${head}.output`, output.row(edited ? position : 0));
  }
  const { attention, attentionNorm } = trace.network.blocks[i]!;
  if (attention.output.bias) append(parts, `block.${i}.attention.bias`, attention.output.bias);
  return throughPostNorm(trace, i, "attention", attentionNorm, parts, position);
}

function feedforwardParts(trace: Trace, i: number, position: number): Parts {
  const output = trace.read(`block.${i}.feedforward`, [position]).values;
  const { feedforward, feedforwardNorm } = trace.network.blocks[i]!;
  const { bias } = feedforward.second;
  const parts: Parts = { names: [`block.${i}.feedforward`], rows: [bias ? subtract(output, bias) : output] };
  if (bias) append(parts, `block.${i}.feedforward.bias`, bias);
  return throughPostNorm(trace, i, "feedforward", feedforwardNorm, parts, position);
}

function throughPostNorm(
  trace: Trace,
  i: number,
  half: string,
  norm: Norm | null,
  parts: Parts,
  position: number,
): Parts {
  if (!norm) return parts;
  const scale = trace.read(`block.${i}.${half}_normed.scale`, [position]).values[0]!;
  return throughNorm(norm, parts, scale, `block.${i}.${half}_normed.shift`);
}

/** Applies a norm with a fixed scale to each part; its shift β becomes one more part. */
function throughNorm(norm: Norm, { names, rows }: Parts, scale: number, shift: string): Parts {
  const { gain } = norm;
  const normed = rows.map((row) => {
    const mean = norm.shift ? row.reduce((sum, value) => sum + value, 0) / row.length : 0;
    return row.map((value, j) => (gain[j]! * (value - mean)) / scale);
  });
  return norm.shift ? { names: [...names, shift], rows: [...normed, norm.shift] } : { names, rows: normed };
}

/** Projects each part with the matrix of one head; the bias becomes one more part. */
function throughLinear({ weight, bias }: Linear, head: number, D: number, { names, rows }: Parts): Parts {
  const first = head * D;
  const weights = range(D).map((d) => weight.row(first + d));
  const projected = rows.map((row) => Float32Array.from(weights, (column) => dot(row, column)));
  if (!bias) return { names, rows: projected };
  return { names: [...names, "bias"], rows: [...projected, bias.subarray(first, first + D)] };
}

function append(parts: Parts, name: string, row: Float32Array): void {
  parts.names.push(name);
  parts.rows.push(row);
}

function subtract(one: Float32Array, other: Float32Array): Float32Array {
  return one.map((value, i) => value - other[i]!);
}

function addTo(one: Float32Array, other: Float32Array): Float32Array {
  return one.map((value, i) => value + other[i]!);
}

function sumOf(rows: readonly Float32Array[], length: number): Float32Array {
  const sum = new Float64Array(length);
  for (const row of rows) for (let j = 0; j < length; j++) sum[j] = sum[j]! + row[j]!;
  return Float32Array.from(sum);
}
