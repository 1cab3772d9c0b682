/** Word senses: the vectors of one word across many texts, and the tokens nearest to a vector.
 *
 * Shapes: N occurrences, S stages, C features of the stream, V tokens in the vocabulary.
 */

import { sortColumns } from "../../model/matrix";
import type { Weight } from "../kernels/kernels";
import { dot, range } from "../model/tensor";
import type { Config } from "../types";
import { principalAxes } from "./principalAxes";
import type { Trace } from "./trace";

/** A word's vectors compared at every stage. */
export interface SenseMap {
  points: number[][][]; // S N 2: projections onto the first two principal components
  shares: number[][]; // S 2: the fraction of variance explained by each component
  cosines: number[][][]; // S N N
}

/** The sites of a token's vector in order: static, at the input of each block, and final. */
export function stages({ n_block }: Config): string[] {
  return ["embedding", ...range(n_block).map((i) => `block.${i}.input`), "final"];
}

/** Compares the vectors at these places, which are in texts of one model. */
export function mapSenses(places: readonly { trace: Trace; position: number }[]): SenseMap {
  const ofStages = stages(places[0]!.trace.config).map((stage) => {
    const rows = places.map(({ trace, position }) => trace.read(stage, [position]).values);
    const units = rows.map(normalize);
    const { points, shares } = principalAxes(rows);
    return { points, shares, cosines: units.map((one) => units.map((other) => dot(one, other))) };
  });
  return {
    points: ofStages.map(({ points }) => points),
    shares: ofStages.map(({ shares }) => shares),
    cosines: ofStages.map(({ cosines }) => cosines),
  };
}

/** The tokens' vectors at a stage: their unembedding vectors at the final one, their static embeddings before it. */
export function tokenVectors({ network }: Trace, stage: string): Weight {
  return stage === "final" ? network.unembedding.weight : network.embedding;
}

/** The tokens whose vectors are nearest to a vector, with their cosines. */
export function neighbors(vectors: Weight, vector: Float32Array, count: number): [number, number][] {
  const unit = normalize(vector);
  const cosines = Float32Array.from({ length: vectors.rows }, (_, id) =>
    dot(normalize(vectors.row(id)), unit),
  );
  return sortColumns(cosines)
    .slice(0, count)
    .map((id) => [id, cosines[id]!]);
}

function normalize(vector: Float32Array): Float32Array {
  const length = Math.max(Math.sqrt(dot(vector, vector)), 1e-12);
  return vector.map((value) => value / length);
}
