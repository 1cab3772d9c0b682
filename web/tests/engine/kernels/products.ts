/** What every implementation of the kernels must do. */

import { describe, expect, test } from "vitest";
import { type Kernels, type NumberType, type Weight } from "../../../src/engine/kernels/kernels";
import { Matrix } from "../../../src/model/matrix";
import { makeRandom, uniform } from "../../../src/model/random";

// T, n, m: multiples of the tile sizes, one less, one more, and single rows and columns.
const SHAPES: [number, number, number][] = [
  [1, 1, 1],
  [1, 3, 5],
  [1, 64, 64],
  [2, 4, 4],
  [3, 7, 2],
  [4, 16, 9],
  [5, 33, 31],
  [8, 96, 100],
  [32, 65, 1],
  [64, 48, 127],
];

export function randomMatrix(rows: number, columns: number, seed: number): Matrix {
  return new Matrix(Float32Array.from(uniform(rows * columns, 1, seed)), rows, columns);
}

/** A matrix with the given numbers, in several writes that do not end where rows end. */
export function fill(kernels: Kernels, { values, rows, columns }: Matrix): Weight {
  const W = kernels.allocate(rows, columns, "float32");
  writeInParts(W, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  return W;
}

export function writeInParts(W: Weight, bytes: Uint8Array): void {
  const size = Math.max(1, Math.floor(bytes.length / 3));
  for (let start = 0; start < bytes.length; start += size)
    W.write(start, bytes.subarray(start, start + size));
}

/** Rounding errors grow with the sizes of the terms, not with their sum, which may be close to zero. */
function expectProduct(
  product: Matrix,
  a: Matrix,
  row: (j: number) => ArrayLike<number>,
  bias?: Float32Array,
) {
  for (let i = 0; i < product.rows; i++)
    for (let j = 0; j < product.columns; j++) {
      const b = row(j);
      let [sum, size] = [bias?.[j] ?? 0, Math.abs(bias?.[j] ?? 0)];
      a.row(i).forEach((value, k) => {
        sum += value * b[k]!;
        size += Math.abs(value * b[k]!);
      });
      const error = Math.abs(product.at(i, j) - sum);
      if (!(error <= 1e-6 * size + 1e-30))
        expect.fail(`row ${i}, column ${j}: ${product.at(i, j)}, not ${sum}`);
    }
}

export function testProducts(name: string, create: () => Promise<Kernels>): void {
  describe(name, () => {
    test.each(SHAPES)("multiplies %i vectors by a matrix with %i inputs and %i outputs", async (T, n, m) => {
      const kernels = await create();
      const [x, numbers] = [randomMatrix(T, n, 1), randomMatrix(m, n, 2)];
      const bias = randomMatrix(1, m, 3).values;
      const W = fill(kernels, numbers);
      const product = kernels.matmul(x, W);
      expect([product.rows, product.columns]).toEqual([T, m]);
      expectProduct(product, x, (j) => numbers.row(j));
      expectProduct(kernels.matmul(x, W, bias), x, (j) => numbers.row(j), bias);
      expect(W.row(m - 1)).toEqual(numbers.row(m - 1).slice());
    });

    test.each(SHAPES)("multiplies computed matrices of %i × %i and %i rows or columns", async (T, n, m) => {
      const kernels = await create();
      const [a, b, c] = [randomMatrix(T, n, 1), randomMatrix(m, n, 2), randomMatrix(n, m, 3)];
      expectProduct(kernels.multiplyTransposed(a, b), a, (j) => b.row(j));
      const column = (j: number) => Array.from({ length: n }, (_, k) => c.at(k, j));
      expectProduct(kernels.multiply(a, c), a, column);
    });

    test("decodes every half-precision number", async () => {
      const kernels = await create();
      const halves = Uint16Array.from({ length: 2 ** 16 }, (_, i) => i);
      const W = kernels.allocate(256, 256, "float16");
      writeInParts(W, new Uint8Array(halves.buffer));
      const decoded = new Float32Array(2 ** 16);
      for (let i = 0; i < 256; i++) decoded.set(W.row(i), 256 * i);
      expect(decoded[0x0000]).toBe(0);
      expect(decoded[0x8000]).toBe(-0);
      expect(decoded[0x0001]).toBe(2 ** -24);
      expect(decoded[0x03ff]).toBe(1023 * 2 ** -24);
      expect(decoded[0x0400]).toBe(2 ** -14);
      expect(decoded[0x3555]).toBe(0.333251953125);
      expect(decoded[0xc000]).toBe(-2);
      expect(decoded[0x7bff]).toBe(65504);
      expect(decoded[0x7c00]).toBe(Infinity);
      expect(decoded[0xfc00]).toBe(-Infinity);
      expect(decoded[0x7c01]).toBeNaN();
      for (let i = 1; i < 0x7c00; i++)
        if (!(decoded[i]! > decoded[i - 1]!)) expect.fail(`not ordered at ${i}`);

      const column = kernels.allocate(2 ** 16, 1, "float16");
      writeInParts(column, new Uint8Array(halves.buffer));
      const { values } = kernels.matmul(new Matrix(Float32Array.of(1), 1, 1), column);
      values.forEach((value, i) => {
        if (value !== decoded[i] && !(isNaN(value) && isNaN(decoded[i]!))) expect.fail(`${value} at ${i}`);
      });
    });

    test.each<[NumberType, number, number, number]>([
      ["float16", 1, 9, 5],
      ["float16", 4, 130, 70],
      ["int8", 1, 9, 5],
      ["int8", 7, 130, 70],
    ])("multiplies by a matrix of %s numbers: %i vectors, %i inputs, %i outputs", async (type, T, n, m) => {
      const kernels = await create();
      const random = makeRandom(4);
      const W = kernels.allocate(m, n, type);
      const codes = Array.from({ length: m * n }, () => Math.floor(255 * random()) - 127);
      if (type === "int8") {
        writeInParts(W, new Uint8Array(Int8Array.from(codes).buffer));
        for (let j = 0; j < m; j++) W.scales[j] = 0.001 + random() / 100;
      } else {
        // Halves between 2⁻⁵ and 2⁻¹, with either sign.
        const halves = codes.map((code) => (code & 0x8000) | 0x2c00 | ((code * 97) & 0x0fff));
        writeInParts(W, new Uint8Array(Uint16Array.from(halves).buffer));
      }
      if (type === "int8") {
        expect(W.row(1)[0]).toBeCloseTo(codes[n]! * W.scales[1]!, 6);
        expect(Array.from(W.bytes(1), (byte) => (byte << 24) >> 24)).toEqual(codes.slice(n, 2 * n));
      } else expect(W.bytes(1).length).toBe(2 * n);
      const x = randomMatrix(T, n, 5);
      const rows = Array.from({ length: m }, (_, j) => W.row(j));
      expectProduct(kernels.matmul(x, W), x, (j) => rows[j]!);
    });

    test("keeps earlier results and matrices when more memory is needed", async () => {
      const kernels = await create();
      const numbers = randomMatrix(20, 30, 6);
      const W = fill(kernels, numbers);
      const x = randomMatrix(2, 30, 7);
      const before = kernels.matmul(x, W);
      const copy = before.values.slice();
      const large = kernels.matmul(randomMatrix(100, 700, 8), fill(kernels, randomMatrix(400, 700, 9)));
      expect(large.rows).toBe(100);
      expect(before.values).toEqual(copy);
      expect(kernels.matmul(x, W).values).toEqual(copy);
    });

    test("refuses sizes that do not match", async () => {
      const kernels = await create();
      const W = fill(kernels, randomMatrix(4, 8, 1));
      expect(() => kernels.matmul(randomMatrix(2, 7, 1), W)).toThrow("7 numbers by a matrix with 8 inputs");
      expect(() => kernels.multiply(randomMatrix(2, 7, 1), randomMatrix(8, 7, 1))).toThrow("8 inputs");
    });
  });
}
