/** The shaders, in WGSL. All numbers are float32.
 *
 * Shapes: T positions, the second index of a dispatch or the number of rows of an input; n inputs, m outputs; H heads,
 * D features per head. Matrices are stored row by row. The length of an input's buffer determines how many rows it has.
 */

import type { NumberType } from "../kernels/kernels";
import type { Config } from "../types";

export const TILE = 64; // rows and columns of the tile of a product that one workgroup computes
export const THREADS = 64; // of a workgroup, in all other shaders
export const MOST_FEATURES = 256; // of a head

/** Number i of a trained matrix, without its row's scale. Words hold two float16 or four int8 numbers. */
const STORED: Record<NumberType, string> = {
  float32: `
@group(0) @binding(1) var<storage, read> W: array<f32>;
fn stored(i: u32) -> f32 { return W[i]; }
`,
  // Subnormal numbers are converted from integers: a GPU may treat them as zero.
  float16: `
@group(0) @binding(1) var<storage, read> W: array<u32>;
fn stored(i: u32) -> f32 {
  let half = extractBits(W[i / 2], 16 * (i % 2), 16);
  let sign = select(1.0, -1.0, half >= 0x8000);
  let magnitude = half & 0x7fff;
  if (magnitude < 0x400) { return sign * f32(magnitude) * exp2(-24.0); }
  return sign * bitcast<f32>((magnitude << 13) + (112u << 23));
}
`,
  int8: `
@group(0) @binding(1) var<storage, read> W: array<i32>;
fn stored(i: u32) -> f32 { return f32(extractBits(W[i / 4], 8 * (i % 4), 8)); }
`,
};

/** y = x Wᵀ + b: T × n → T × m. A workgroup computes 64 × 64 numbers of y, a thread 4 × 4 of them.
 *
 * The products of 16 inputs at a time are summed separately, which halves the rounding errors of long sums.
 */
export const matmul = (type: NumberType) => `
override n: u32;
override m: u32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
${STORED[type]}
@group(0) @binding(2) var<storage, read> scales: array<f32>; // of the rows of W
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

var<workgroup> xTile: array<array<f32, ${TILE}>, 16>; // inputs × rows of x
var<workgroup> wTile: array<array<f32, ${TILE}>, 16>; // inputs × rows of W

@compute @workgroup_size(16, 16)
fn main(
  @builtin(workgroup_id) tile: vec3u,
  @builtin(local_invocation_id) thread: vec3u,
  @builtin(local_invocation_index) index: u32,
) {
  let T = arrayLength(&x) / n;
  let firstRow = ${TILE} * tile.y;
  let firstOutput = ${TILE} * tile.x;
  var sums: array<vec4f, 4>; // four outputs of each of four rows
  for (var start = 0u; start < n; start += 16) {
    for (var at = index; at < 16 * ${TILE}; at += 256) {
      let k = at % 16;
      let row = firstRow + at / 16;
      let output = firstOutput + at / 16;
      xTile[k][at / 16] = 0;
      wTile[k][at / 16] = 0;
      if (start + k < n && row < T) { xTile[k][at / 16] = x[row * n + start + k]; }
      if (start + k < n && output < m) { wTile[k][at / 16] = stored(output * n + start + k); }
    }
    workgroupBarrier();
    var products = array<vec4f, 4>(); // SwiftShader resets it only if it is initialized here
    for (var k = 0; k < 16; k++) {
      let j = 4 * thread.x;
      let w = vec4f(wTile[k][j], wTile[k][j + 1], wTile[k][j + 2], wTile[k][j + 3]);
      for (var i = 0u; i < 4; i++) { products[i] += xTile[k][4 * thread.y + i] * w; }
    }
    for (var i = 0; i < 4; i++) { sums[i] += products[i]; }
    workgroupBarrier();
  }
  for (var i = 0u; i < 4; i++) {
    for (var j = 0u; j < 4; j++) {
      let row = firstRow + 4 * thread.y + i;
      let output = firstOutput + 4 * thread.x + j;
      if (row < T && output < m) { y[row * m + output] = scales[output] * sums[i][j] + bias[output]; }
    }
  }
}
`;

/** LayerNorm, or RMSNorm if not `centered`. Each row of x consists of `groups` vectors of `width` numbers. */
export const NORM = `
override width: u32;
override groups: u32;
override epsilon: f32;
override centered: bool;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> gain: array<f32>;
@group(0) @binding(2) var<storage, read> shift: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

var<workgroup> parts: array<f32, ${THREADS}>;

/** The sum of what each thread passes. */
fn total(part: f32, thread: u32) -> f32 {
  parts[thread] = part;
  workgroupBarrier();
  for (var half = ${THREADS / 2}u; half > 0; half /= 2) {
    if (thread < half) { parts[thread] += parts[thread + half]; }
    workgroupBarrier();
  }
  let sum = parts[0];
  workgroupBarrier();
  return sum;
}

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let start = (group.y * groups + group.x) * width;
  var mean = 0.0;
  if (centered) {
    var part = 0.0;
    for (var j = thread; j < width; j += ${THREADS}) { part += x[start + j]; }
    mean = total(part, thread) / f32(width);
  }
  var squares = 0.0;
  for (var j = thread; j < width; j += ${THREADS}) {
    let difference = x[start + j] - mean;
    squares += difference * difference;
  }
  let scale = sqrt(total(squares, thread) / f32(width) + epsilon);
  for (var j = thread; j < width; j += ${THREADS}) {
    y[start + j] = gain[j] * (x[start + j] - mean) / scale + shift[j];
  }
}
`;

/** RoPE, in place: x is T × H·D; the cosines and sines are T × `pairs`, and further features are left unchanged. */
export const ROTATE = `
override H: u32;
override D: u32;
override pairs: u32;
@group(0) @binding(0) var<storage, read> cosines: array<f32>;
@group(0) @binding(1) var<storage, read> sines: array<f32>;
@group(0) @binding(2) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= H * pairs) { return; }
  let pair = id.x % pairs;
  let first = id.y * H * D + id.x / pairs * D + pair;
  let second = first + pairs;
  let c = cosines[id.y * pairs + pair];
  let s = sines[id.y * pairs + pair];
  let rotated = vec2f(x[first] * c - x[second] * s, x[second] * c + x[first] * s);
  x[first] = rotated.x;
  x[second] = rotated.y;
}
`;

/** Attention of all heads: a workgroup mixes the values for one head and one query position.
 *
 * It goes through 64 keys at a time and keeps a running maximum of the scores, so that no T × T matrix is stored.
 */
export const ATTEND = `
override H: u32;
override kvHeads: u32;
override D: u32;
override divisor: f32;
override causal: bool;
override cap: f32; // of the divided scores; 0 for none
override window: u32; // key positions that a causal query position attends to, at most
@group(0) @binding(0) var<storage, read> query: array<f32>;
@group(0) @binding(1) var<storage, read> key: array<f32>;
@group(0) @binding(2) var<storage, read> value: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

var<workgroup> scores: array<f32, ${THREADS}>;
var<workgroup> weights: array<f32, ${THREADS}>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) thread: u32) {
  let head = group.x;
  let position = group.y;
  let T = arrayLength(&query) / (H * D);
  let queryStart = (position * H + head) * D;
  let kvHead = head / (H / kvHeads);
  var first = 0u;
  var last = T;
  if (causal) {
    last = position + 1;
    first = last - min(last, window);
  }
  var largest = -1e30;
  var sum = 0.0;
  var mixed: array<f32, ${MOST_FEATURES / THREADS}>; // features thread, thread + ${THREADS}, …
  for (var start = first; start < last; start += ${THREADS}) {
    let count = min(last - start, ${THREADS});
    if (thread < count) {
      let keyStart = ((start + thread) * kvHeads + kvHead) * D;
      var score = 0.0;
      for (var k = 0u; k < D; k++) { score += query[queryStart + k] * key[keyStart + k]; }
      score /= divisor;
      if (cap > 0) { score = cap * tanh(clamp(score / cap, -20.0, 20.0)); }
      scores[thread] = score;
    }
    workgroupBarrier();
    let before = largest;
    for (var j = 0u; j < count; j++) { largest = max(largest, scores[j]); }
    if (thread < count) { weights[thread] = exp(scores[thread] - largest); }
    workgroupBarrier();
    let shrink = exp(before - largest); // what was summed so far, relative to the new maximum
    var part = 0.0;
    for (var j = 0u; j < count; j++) { part += weights[j]; }
    sum = sum * shrink + part;
    for (var k = thread; k < D; k += ${THREADS}) {
      part = 0.0;
      for (var j = 0u; j < count; j++) {
        part += weights[j] * value[((start + j) * kvHeads + kvHead) * D + k];
      }
      mixed[k / ${THREADS}] = mixed[k / ${THREADS}] * shrink + part;
    }
  }
  for (var k = thread; k < D; k += ${THREADS}) { y[queryStart + k] = mixed[k / ${THREADS}] / sum; }
}
`;

const SIGMOID = `
fn sigmoid(x: f32) -> f32 { return 1 / (1 + exp(min(-x, 80))); }
`;

// 1 + tanh(u) = 2 sigmoid(2u), without the cancellation.
const GELU_TANH = `
${SIGMOID}
fn f(x: f32) -> f32 { return x * sigmoid(${2 * Math.sqrt(2 / Math.PI)} * (x + 0.044715 * x * x * x)); }
`;

const NONLINEARITIES: Record<Config["feedforward"], string> = {
  relu: `
fn f(x: f32) -> f32 { return max(x, 0); }
`,
  // A series of positive terms for erf, and for larger arguments the continued fraction of 1 - erf.
  gelu: `
fn erf(x: f32) -> f32 {
  let size = min(abs(x), 6);
  let density = ${2 / Math.sqrt(Math.PI)} * exp(-size * size);
  if (size < 2) {
    var term = size;
    var sum = size;
    for (var k = 3.0; k < 50; k += 2) {
      term *= 2 * size * size / k;
      sum += term;
    }
    return sign(x) * density * sum;
  }
  var fraction = 0.0;
  for (var k = 24.0; k > 0; k -= 1) { fraction = k / 2 / (size + fraction); }
  return sign(x) * (1 - density / 2 / (size + fraction));
}
fn f(x: f32) -> f32 { return 0.5 * x * (1 + erf(x * ${Math.SQRT1_2})); }
`,
  gelu_tanh: GELU_TANH,
  swiglu: `
${SIGMOID}
fn f(x: f32) -> f32 { return x * sigmoid(x); }
`,
  geglu: GELU_TANH,
};

/** f(x), in place. */
export const activate = (feedforward: Config["feedforward"]) => `
override width: u32;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
${NONLINEARITIES[feedforward]}
@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.y * width + id.x;
  if (id.x < width) { x[i] = f(x[i]); }
}
`;

/** f(gate) ∘ x, which overwrites x. */
export const multiplyGate = (feedforward: Config["feedforward"]) => `
override width: u32;
@group(0) @binding(0) var<storage, read> gate: array<f32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
${NONLINEARITIES[feedforward]}
@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.y * width + id.x;
  if (id.x < width) { x[i] = f(gate[i]) * x[i]; }
}
`;

export const ADD = `
override width: u32;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum: array<f32>;

@compute @workgroup_size(${THREADS})
fn main(@builtin(global_invocation_id) id: vec3u) {
  let i = id.y * width + id.x;
  if (id.x < width) { sum[i] = a[i] + b[i]; }
}
`;
