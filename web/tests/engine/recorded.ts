/** What the Python tests recorded: models, and what they compute. */

import { readFileSync } from "node:fs";
import type { Weight } from "../../src/engine/kernels/kernels";
import { ReferenceKernels } from "../../src/engine/kernels/reference";
import type { Parameters } from "../../src/engine/model/parameters";
import { Transformer } from "../../src/engine/model/transformer";
import type { Config, Edit } from "../../src/engine/types";

/** float32 numbers in base64. */
export interface Numbers {
  shape: number[];
  data: string;
}

export interface RecordedTrace {
  ids: number[];
  edits: Edit[];
  sites: Record<string, Numbers>;
}

/** A request and the server's response: JSON or matrices. */
export interface RecordedExchange {
  path: string;
  body: object;
  status: number;
  json?: unknown;
  matrices?: { shapes: number[][]; data: string };
}

export interface RecordedModel {
  config: Config;
  parameters: Record<string, Numbers>;
  weights: Record<string, Numbers>;
  traces: RecordedTrace[];
  greedy: { prompt: number[]; ids: number[] } | null;
  characters: string; // of the tokenizer, by id
  exchanges: RecordedExchange[];
}

const path = process.env.CLEARHEAD_RECORDED_ENGINE;
export const recorded: Record<string, RecordedModel> = path ? JSON.parse(readFileSync(path, "utf8")) : {};

export function decode({ data }: Numbers): Float32Array {
  return new Float32Array(Uint8Array.from(Buffer.from(data, "base64")).buffer);
}

export function makeNetwork({ config, parameters }: RecordedModel): Transformer {
  return new Transformer(config, makeParameters(parameters));
}

function makeParameters(parameters: RecordedModel["parameters"]): Parameters {
  const kernels = new ReferenceKernels();
  return {
    kernels,
    weight: (name) => {
      const { shape, data } = parameters[name]!;
      const weight: Weight = kernels.allocate(shape[0]!, shape[1]!, "float32");
      weight.write(0, Uint8Array.from(Buffer.from(data, "base64")));
      return weight;
    },
    vector: (name) => decode(parameters[name]!),
  };
}

/** The ids of a text that an edit patches from; the recorded texts are ids with spaces. */
export function parseIds(text: string): number[] {
  return text.split(" ").map(Number);
}

/** The largest ‖difference‖/‖value‖ of a row; infinite if numbers that are not finite differ.
 *
 * `measure` replaces the values in the denominator: one row for each of theirs.
 */
export function relativeError(
  actual: Float32Array,
  expected: Float32Array,
  columns: number,
  measure: Float32Array = expected,
): number {
  const rows = expected.length / columns;
  const width = measure.length / rows;
  let largest = 0;
  for (let row = 0; row < rows; row++) {
    let [difference, size] = [0, 0];
    for (let i = row * columns; i < (row + 1) * columns; i++)
      if (!Object.is(actual[i], expected[i])) difference += (actual[i]! - expected[i]!) ** 2;
    for (const value of measure.subarray(row * width, (row + 1) * width))
      if (Number.isFinite(value)) size += value ** 2;
    const error = Math.sqrt(difference) / Math.max(Math.sqrt(size), 1e-30);
    largest = Math.max(largest, Number.isNaN(error) ? Infinity : error);
  }
  return largest;
}
