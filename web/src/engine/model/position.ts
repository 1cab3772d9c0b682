/** Positions: vectors added to the embedding (learned, sinusoidal), or rotary position embeddings (RoPE).
 *
 * Frequencies and angles are rounded to float32 at each step, as in PyTorch: at a late position, the rounding of a
 * frequency moves its angle by more than the precision of float32.
 */

import { Matrix } from "../../model/matrix";
import type { Config } from "../types";
import { range, zeros } from "./tensor";

const { fround } = Math;

/** Cosines and sines: T × rotated pairs of features. */
export interface Rotation {
  cos: Matrix;
  sin: Matrix;
}

/** Alternating sines and cosines of decreasing frequency: T × width. */
export function sinusoids(positions: readonly number[], width: number): Matrix {
  const frequencies = makeFrequencies(10_000, width);
  const vectors = zeros(positions.length, width);
  positions.forEach((position, i) => {
    const row = vectors.row(i);
    for (let j = 0; j < width; j++) {
      const angle = fround(position * frequencies[j >> 1]!);
      row[j] = j % 2 ? Math.cos(angle) : Math.sin(angle);
    }
  });
  return vectors;
}

/** The RoPE angle of each pair of features at each position, as cosines and sines. */
export function makeRotation(
  positions: readonly number[],
  width: number,
  base: number,
  scaling: Config["rope_scaling"] = null,
): Rotation {
  let frequencies = makeFrequencies(base, width);
  if (scaling) frequencies = scaleFrequencies(frequencies, scaling, base);
  const factor = fround(scaling?.attention_factor ?? 1);
  const half = frequencies.length;
  const [cos, sin] = [zeros(positions.length, half), zeros(positions.length, half)];
  positions.forEach((position, i) =>
    frequencies.forEach((frequency, j) => {
      const angle = fround(position * frequency);
      cos.values[i * half + j] = fround(Math.cos(angle)) * factor;
      sin.values[i * half + j] = fround(Math.sin(angle)) * factor;
    }),
  );
  return { cos, sin };
}

/** The rotation of each block. Some blocks may have none, and local blocks may use a different base. */
export function makeRotations(positions: readonly number[], config: Config): (Rotation | null)[] {
  const everywhere = makeRotation(positions, config.rotary_dim, config.rotary_base, config.rope_scaling);
  const local = config.local_rotary_base
    ? makeRotation(positions, config.rotary_dim, config.local_rotary_base)
    : everywhere;
  return range(config.n_block).map((i) => {
    if (!isRotated(config, i)) return null;
    return config.local_blocks.includes(i) ? local : everywhere;
  });
}

/** Whether a block rotates its queries and keys. */
export function isRotated(
  { position, unrotated_blocks }: Pick<Config, "position" | "unrotated_blocks">,
  block: number,
): boolean {
  return position === "rotary" && !unrotated_blocks.includes(block);
}

function makeFrequencies(base: number, width: number): Float32Array {
  return Float32Array.from({ length: Math.ceil(width / 2) }, (_, i) =>
    Math.pow(fround(base), fround((-2 * i) / width)),
  );
}

/** Lowers the frequencies so that a longer context covers the angles seen in training. */
export function scaleFrequencies(
  frequencies: Float32Array,
  scaling: NonNullable<Config["rope_scaling"]>,
  base: number,
): Float32Array {
  const { kind, factor, low_freq_factor: low, high_freq_factor: high, original_context } = scaling;
  const [first, last] = yarnRange(scaling, base, frequencies.length);
  return frequencies.map((frequency, number) => {
    const slower = fround(frequency / factor);
    if (kind === "linear") return slower;
    const rounds = fround(fround(original_context * frequency) / fround(2 * Math.PI));
    const share =
      kind === "yarn"
        ? fround(1 - fround((number - first) / fround(last - first)))
        : fround(fround(rounds - low) / fround(high - low));
    const kept = Math.min(1, Math.max(0, share));
    const difference = fround(frequency - slower);
    return kept < 0.5
      ? fround(slower + fround(kept * difference))
      : fround(frequency - fround(difference * fround(1 - kept)));
  });
}

/** The indices of the frequencies between which YaRN interpolates. */
export function yarnRange(
  { original_context, low_freq_factor: low, high_freq_factor: high }: NonNullable<Config["rope_scaling"]>,
  base: number,
  pairs: number,
): [number, number] {
  const turns = original_context / (2 * Math.PI);
  const numberOf = (rounds: number) => (pairs * Math.log(turns / rounds)) / Math.log(base);
  const first = Math.max(Math.floor(numberOf(high)), 0);
  return [first, Math.max(Math.min(Math.ceil(numberOf(low)), 2 * pairs - 1), first + 1e-3)];
}

/** Rotates feature i of each head together with feature i + D/2, so that positions enter q · k only as a distance:
 * T × H·D.
 *
 * With partial rotation, only the first `rotary_dim` features of a head rotate, each i with i + `rotary_dim`/2.
 */
export function rotate(x: Matrix, { cos, sin }: Rotation, D: number): Matrix {
  const rotated = new Matrix(x.values.slice(), x.rows, x.columns);
  const half = cos.columns;
  for (let i = 0; i < x.rows; i++) {
    const [c, s] = [cos.row(i), sin.row(i)];
    for (let start = i * x.columns; start < (i + 1) * x.columns; start += D)
      for (let j = 0; j < half; j++) {
        const [first, second] = [x.values[start + j]!, x.values[start + half + j]!];
        rotated.values[start + j] = first * c[j]! - second * s[j]!;
        rotated.values[start + half + j] = second * c[j]! + first * s[j]!;
      }
  }
  return rotated;
}
