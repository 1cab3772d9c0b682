import { expect, test } from "vitest";
import { ReferenceKernels } from "../../../src/engine/kernels/reference";
import { attendFused } from "../../../src/engine/model/attendFused";
import { compare, divide, mask, mix, softmax } from "../../../src/engine/model/attentionSteps";
import { AttentionMask } from "../../../src/engine/model/mask";
import { range, takeHead } from "../../../src/engine/model/tensor";
import { Matrix } from "../../../src/model/matrix";
import { CONFIG } from "../../config";

const { n_head, n_kv_head, d_head, d_k } = CONFIG;

function makeMatrix(rows: number, heads: number, seed: number): Matrix {
  const values = Float32Array.from({ length: rows * heads * d_head }, (_, i) => Math.sin(seed + 1.7 * i));
  return new Matrix(values, rows, heads * d_head);
}

test.each([
  ["causal", 70, 70, new AttentionMask(true)],
  ["causal, after cached positions", 3, 20, new AttentionMask(true)],
  ["one token", 1, 1, new AttentionMask(true)],
  ["sliding window", 70, 70, new AttentionMask(true, 5)],
  ["bidirectional", 12, 12, new AttentionMask(false)],
])("equals the lecture's steps of each head: %s", (_, T, S, attentionMask) => {
  const [query, key, value] = [
    makeMatrix(T, n_head, 1),
    makeMatrix(S, n_kv_head, 2),
    makeMatrix(S, n_kv_head, 3),
  ];
  const fused = attendFused(query, key, value, attentionMask, CONFIG, new ReferenceKernels());
  for (const head of range(n_head)) {
    const shared = Math.floor(head / (n_head / n_kv_head));
    const scores = compare(takeHead(query, head, d_head), takeHead(key, shared, d_head));
    const masked = mask(divide(scores, d_k), attentionMask, range(S, S - T));
    const mixed = mix(softmax(masked), takeHead(value, shared, d_head));
    takeHead(fused, head, d_head).values.forEach((number, i) =>
      expect(number).toBeCloseTo(mixed.values[i]!, 5),
    );
  }
});
