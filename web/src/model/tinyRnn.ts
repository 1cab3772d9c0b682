/**
 * A small recurrent network that learns "was any digit a 1?", and probes that ask its states for the first digit.
 * Shapes: C units, T digits. Digits come with noise, as if each vector carried other information too; without it, the
 * states after a 1 and after a 0 would always differ in some distant decimal.
 */

import { makeRandom, uniform } from "./random";

export const UNITS = 4; // C
export const NOISE = 0.3; // added to each digit, from -NOISE to NOISE
const [SHORTEST, LONGEST] = [5, 20]; // lengths of training sequences
const BATCH = 16;
const LEARNING_RATE = 0.02;
const [BETA1, BETA2, EPSILON] = [0.9, 0.999, 1e-8]; // Adam
const RIDGE = 1e-6;

/** h_t = tanh(x_t w + h_{t-1} U + b), and the score of "there was a 1" after the last digit, h_T · v + c; all in one
 * list: w (C), U (C × C, by rows), b (C), v (C), c. Training keeps them in single precision: the last digits of a tanh
 * differ between browsers, and hundreds of steps in double precision would magnify that. */
export type TinyRnn = Float32Array | Float64Array;
const [U, B, V, BIAS] = [UNITS, UNITS + UNITS ** 2, 2 * UNITS + UNITS ** 2, 3 * UNITS + UNITS ** 2];

export function makeRnn(seed: number): TinyRnn {
  return Float32Array.from(uniform(BIAS + 1, 1 / Math.sqrt(UNITS), seed));
}

/** The state after each digit. */
export function statesOf(rnn: TinyRnn, digits: ArrayLike<number>): Float64Array[] {
  let state = new Float64Array(UNITS);
  return Array.from(digits, (digit) => {
    const next = new Float64Array(UNITS);
    for (let j = 0; j < UNITS; j++) {
      let sum = digit * rnn[j]! + rnn[B + j]!;
      for (let i = 0; i < UNITS; i++) sum += state[i]! * rnn[U + i * UNITS + j]!;
      next[j] = Math.tanh(sum);
    }
    return (state = next);
  });
}

/** Adds the gradient of the loss on one sequence, -log P(answer), and returns the loss. */
export function addGradient(
  rnn: TinyRnn,
  digits: readonly number[],
  answer: number,
  gradient: Float64Array,
): number {
  const states = statesOf(rnn, digits);
  const last = states.at(-1)!;
  let score = rnn[BIAS]!;
  for (let j = 0; j < UNITS; j++) score += last[j]! * rnn[V + j]!;
  const slope = 1 / (1 + Math.exp(-score)) - answer;
  gradient[BIAS]! += slope;
  let back = new Float64Array(UNITS); // of the loss with respect to the state
  for (let j = 0; j < UNITS; j++) {
    gradient[V + j]! += slope * last[j]!;
    back[j] = slope * rnn[V + j]!;
  }
  for (let t = digits.length - 1; t >= 0; t--) {
    const before = states[t - 1];
    const earlier = new Float64Array(UNITS);
    for (let j = 0; j < UNITS; j++) {
      const through = back[j]! * (1 - states[t]![j]! ** 2);
      gradient[j]! += through * digits[t]!;
      gradient[B + j]! += through;
      for (let i = 0; before && i < UNITS; i++) {
        gradient[U + i * UNITS + j]! += through * before[i]!;
        earlier[i]! += through * rnn[U + i * UNITS + j]!;
      }
    }
    back = earlier;
  }
  return Math.log1p(Math.exp(answer === 1 ? -score : score));
}

const noisy = (digit: number, random: () => number) => digit + NOISE * (2 * random() - 1);

/** A network after this many training steps. Half of the sequences are all 0s; the others have a 1 in their
 * first half. */
export function trainRnn(seed: number, steps: number): TinyRnn {
  const rnn = makeRnn(seed);
  const random = makeRandom(seed + 1000);
  const [mean, square] = [new Float64Array(rnn.length), new Float64Array(rnn.length)];
  for (let step = 1; step <= steps; step++) {
    const length = SHORTEST + Math.floor(random() * (LONGEST - SHORTEST + 1));
    const gradient = new Float64Array(rnn.length);
    for (let k = 0; k < BATCH; k++) {
      const [answer, place] = [k % 2, Math.floor(random() * Math.floor(length / 2))];
      const digits = Array.from({ length }, (_, t) => noisy(t === place ? answer : 0, random));
      addGradient(rnn, digits, answer, gradient);
    }
    for (let i = 0; i < rnn.length; i++) {
      const slope = gradient[i]! / BATCH;
      mean[i] = BETA1 * mean[i]! + (1 - BETA1) * slope;
      square[i] = BETA2 * square[i]! + (1 - BETA2) * slope * slope;
      const deviation = Math.sqrt(square[i]! / (1 - BETA2 ** step)) + EPSILON;
      rnn[i]! -= (LEARNING_RATE * mean[i]!) / (1 - BETA1 ** step) / deviation;
    }
  }
  return rnn;
}

/** Sequences that start with a 0 or a 1, in turn, followed by zeros, all with noise. */
export function probeSequences(count: number, zeros: number, seed: number): number[][] {
  const random = makeRandom(seed);
  return Array.from({ length: count }, (_, k) =>
    Array.from({ length: zeros + 1 }, (_, t) => noisy(t === 0 ? k % 2 : 0, random)),
  );
}

/** What attention passes on at each position: the softmax of boosted digits, times the digits. */
export function attendedTo(digits: readonly number[], boost: number): Float64Array[] {
  let [sum, weighted] = [0, 0];
  return digits.map((digit) => {
    const power = Math.exp(boost * digit);
    sum += power;
    weighted += power * digit;
    return Float64Array.of(weighted / sum);
  });
}

export const PROBED = 200; // sequences; a probe is fitted to half of them and tested on the others
const PROBE_SEED = 7;

/** For the states after each digit, the accuracy of a probe for the first one. */
export function probeRnn(rnn: TinyRnn, zeros: number): number[] {
  return probeAccuracies(probeSequences(PROBED, zeros, PROBE_SEED).map((digits) => statesOf(rnn, digits)));
}

export function probeAttention(boost: number, zeros: number): number[] {
  return probeAccuracies(
    probeSequences(PROBED, zeros, PROBE_SEED).map((digits) => attendedTo(digits, boost)),
  );
}

/** After each digit, the mean state of the probed sequences that start with a 1, minus that of those with a 0. */
export function stateDifferences(rnn: TinyRnn, zeros: number): Float64Array[] {
  const states = probeSequences(PROBED, zeros, PROBE_SEED).map((digits) => statesOf(rnn, digits));
  return states[0]!.map((_, t) => {
    const difference = new Float64Array(UNITS);
    states.forEach((each, k) => {
      const sign = k % 2 === 1 ? 1 : -1;
      for (let unit = 0; unit < UNITS; unit++) difference[unit]! += (sign * each[t]![unit]!) / (PROBED / 2);
    });
    return difference;
  });
}

/** The accuracy of a linear probe for the first digit at each position. Vectors are by sequence and position; the first
 * digits are 0 and 1 in turn. The probe is fitted to the first half of the sequences by least squares. */
export function probeAccuracies(vectors: readonly (readonly Float64Array[])[]): number[] {
  const half = vectors.length / 2;
  return vectors[0]!.map((_, t) => {
    const rows = vectors.map((each) => each[t]!);
    const weights = leastSquares(rows.slice(0, half));
    const right = rows.filter((row, k) => k >= half && predict(row, weights) > 0 === (k % 2 === 1));
    return right.length / half;
  });
}

function predict(row: Float64Array, weights: readonly number[]): number {
  let sum = weights[row.length]!;
  for (let i = 0; i < row.length; i++) sum += row[i]! * weights[i]!;
  return sum;
}

/** The weights and, last, the bias that minimize the squared distance to -1 and 1 in turn, plus RIDGE times their own
 * squares: Gaussian elimination. */
function leastSquares(rows: readonly Float64Array[]): number[] {
  const size = rows[0]!.length + 1;
  const system = Array.from({ length: size }, (_, i) => {
    const sums = new Float64Array(size + 1);
    sums[i] = RIDGE;
    return sums;
  });
  rows.forEach((row, k) => {
    for (let i = 0; i < size; i++) {
      const factor = row[i] ?? 1;
      for (let j = 0; j < size; j++) system[i]![j]! += factor * (row[j] ?? 1);
      system[i]![size]! += factor * (2 * (k % 2) - 1);
    }
  });
  for (let i = 0; i < size; i++)
    for (let k = 0; k < size; k++) {
      if (k === i) continue;
      const factor = system[k]![i]! / system[i]![i]!;
      for (let j = i; j <= size; j++) system[k]![j]! -= factor * system[i]![j]!;
    }
  return system.map((row, i) => row[size]! / row[i]!);
}
