import { WasmKernels } from "../../../src/engine/kernels/wasm";
import type { NumberType } from "../../../src/engine/kernels/kernels";
import { assembleProgram } from "../../../src/engine/kernels/program";
import { expect, test } from "vitest";
import { randomMatrix, testProducts } from "./products";

testProducts("WebAssembly", async () => (await WasmKernels.create())!);

test.each<[NumberType, number]>([
  ["float32", 4],
  ["float16", 2],
  ["int8", 1],
])("matrices of %s numbers take little more memory than their numbers", async (type, bytes) => {
  const kernels = (await WasmKernels.create())!;
  const matrices = Array.from({ length: 16 }, () => kernels.allocate(576, 1536, type));
  for (const W of matrices) kernels.matmul(randomMatrix(30, 1536, 1), W);
  expect(kernels.size).toBeLessThan(1.1 * 16 * 576 * 1536 * bytes);
});

test("the module is small, and the one without relaxed SIMD is valid everywhere", () => {
  expect(WebAssembly.validate(assembleProgram(false))).toBe(true);
  expect(assembleProgram(true).length).toBeLessThan(4000);
});
