/** The products in WebAssembly SIMD. Trained matrices live in its memory once, in the type of their file. */

import { Matrix } from "../../model/matrix";
import { decodeNumbers } from "./decode";
import {
  BYTES_PER_NUMBER,
  checkProduct,
  type Kernels,
  type NumberType,
  transpose,
  type Weight,
} from "./kernels";
import { assembleProgram, COLUMNS, MOST_VECTORS, OUTPUTS, type Program } from "./program";

const PAGE = 2 ** 16; // bytes; WebAssembly's unit of memory
const MOST_PAGES = 2 ** 16; // 4 GiB
const ALIGNMENT = 32; // bytes
const PANEL = 2 ** 15; // bytes of rows of W that are multiplied with all vectors while they are in the cache

export class WasmKernels implements Kernels {
  readonly #program: Program;
  readonly #memory: WebAssembly.Memory;
  #end = 0; // of the trained matrices, in bytes; from here on, memory is free for each product to use

  private constructor(program: Program, memory: WebAssembly.Memory) {
    this.#program = program;
    this.#memory = memory;
  }

  /** Null if the browser has no WebAssembly SIMD, or forbids WebAssembly on this page. */
  static async create(): Promise<WasmKernels | null> {
    const module = await compile();
    if (module === null) return null;
    const memory = new WebAssembly.Memory({ initial: 1, maximum: MOST_PAGES });
    const instance = await WebAssembly.instantiate(module, { page: { memory } });
    return new WasmKernels(instance.exports as unknown as Program, memory);
  }

  /** Bytes of WebAssembly's memory. */
  get size(): number {
    return this.#memory.buffer.byteLength;
  }

  allocate(rows: number, columns: number, type: NumberType): WasmWeight {
    const start = roundUp(this.#end, ALIGNMENT);
    const W = new WasmWeight(this.#memory, this.#program, start, rows, columns, type);
    this.#end = start + W.stride * roundUp(rows, OUTPUTS);
    const used = this.#memory.buffer.byteLength;
    this.#reserve(this.#end);
    new Uint8Array(this.#memory.buffer).fill(0, start, Math.min(used, this.#end)); // new memory is zero
    return W;
  }

  matmul(x: Matrix, W: Weight, bias: Float32Array | null = null): Matrix {
    checkProduct(x, W.columns);
    return this.#multiply(x, W as WasmWeight, bias);
  }

  multiplyTransposed(a: Matrix, b: Matrix): Matrix {
    checkProduct(a, b.columns);
    return this.#multiplyRows(a, b.values, b.rows);
  }

  multiply(a: Matrix, b: Matrix): Matrix {
    checkProduct(a, b.rows);
    return this.#multiplyRows(a, transpose(b), b.columns);
  }

  /** Multiplies by the rows of a matrix that is stored only for this product. */
  #multiplyRows(a: Matrix, values: Float32Array, rows: number): Matrix {
    const end = this.#end;
    const rowsMatrix = this.allocate(rows, a.columns, "float32");
    rowsMatrix.write(0, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    const product = this.#multiply(a, rowsMatrix, null);
    this.#end = end;
    return product;
  }

  #multiply(x: Matrix, W: WasmWeight, bias: Float32Array | null): Matrix {
    const row = 4 * roundUp(x.columns, COLUMNS);
    const yRow = 4 * roundUp(W.rows, OUTPUTS);
    const xStart = roundUp(this.#end, ALIGNMENT);
    const yStart = xStart + row * x.rows;
    const panelStart = yStart + yRow * x.rows;
    const panelRows = Math.max(OUTPUTS, Math.floor(PANEL / row / OUTPUTS) * OUTPUTS);
    this.#reserve(panelStart + row * panelRows);
    this.#copyIn(x, xStart, row);
    const step = W.type === "float32" && x.rows <= MOST_VECTORS ? yRow / 4 : panelRows;
    for (let first = 0; first < W.rows; first += step) {
      const count = Math.min(step, roundUp(W.rows - first, OUTPUTS));
      const panel = W.decode(first, Math.min(count, W.rows - first), panelStart);
      this.#multiplyPanel(x.rows, xStart, panel, yStart + 4 * first, row, yRow, count);
    }
    return this.#copyOut(x.rows, W.rows, yStart, yRow, bias);
  }

  #multiplyPanel(
    vectors: number,
    x: number,
    panel: number,
    y: number,
    row: number,
    yRow: number,
    outputs: number,
  ): void {
    const { multiply1, multiply2, multiply3 } = this.#program;
    let i = 0;
    for (; i + 3 <= vectors; i += 3) multiply3(x + i * row, panel, y + i * yRow, row, yRow, outputs);
    const multiplyRest = [null, multiply1, multiply2][vectors - i];
    multiplyRest?.(x + i * row, panel, y + i * yRow, row, yRow, outputs);
  }

  #copyIn(x: Matrix, start: number, row: number): void {
    const memory = new Float32Array(this.#memory.buffer);
    for (let i = 0; i < x.rows; i++) {
      const at = (start + i * row) / 4;
      memory.set(x.values.subarray(i * x.columns, (i + 1) * x.columns), at);
      memory.fill(0, at + x.columns, at + row / 4);
    }
  }

  #copyOut(rows: number, columns: number, start: number, row: number, bias: Float32Array | null): Matrix {
    const memory = new Float32Array(this.#memory.buffer);
    const values = new Float32Array(rows * columns);
    for (let i = 0; i < rows; i++) {
      const at = (start + i * row) / 4;
      values.set(memory.subarray(at, at + columns), i * columns);
      if (bias) for (let j = 0; j < columns; j++) values[i * columns + j]! += bias[j]!;
    }
    return new Matrix(values, rows, columns);
  }

  #reserve(bytes: number): void {
    const missing = Math.ceil((bytes - this.#memory.buffer.byteLength) / PAGE);
    if (missing > 0) this.#memory.grow(missing);
  }
}

class WasmWeight implements Weight {
  readonly scales: Float32Array;
  readonly stride: number; // bytes from one row to the next

  constructor(
    readonly memory: WebAssembly.Memory,
    readonly program: Program,
    readonly address: number,
    readonly rows: number,
    readonly columns: number,
    readonly type: NumberType,
  ) {
    this.scales = new Float32Array(rows).fill(1);
    this.stride = BYTES_PER_NUMBER[type] * roundUp(columns, COLUMNS);
  }

  row(i: number): Float32Array {
    const address = this.address + i * this.stride;
    return decodeNumbers(this.type, this.memory.buffer, address, this.columns, this.scales[i]!);
  }

  bytes(i: number): Uint8Array {
    const length = this.columns * BYTES_PER_NUMBER[this.type];
    return new Uint8Array(this.memory.buffer, this.address + i * this.stride, length);
  }

  write(start: number, bytes: Uint8Array): void {
    const memory = new Uint8Array(this.memory.buffer);
    const length = this.columns * BYTES_PER_NUMBER[this.type];
    for (let at = 0; at < bytes.length;) {
      const [row, offset] = [Math.floor((start + at) / length), (start + at) % length];
      const part = bytes.subarray(at, at + length - offset);
      memory.set(part, this.address + row * this.stride + offset);
      at += part.length;
    }
  }

  /** The address of some rows as float32: their own, or that of a copy at `to`. */
  decode(first: number, count: number, to: number): number {
    const from = this.address + first * this.stride;
    if (this.type === "float32") return from;
    const row = 4 * roundUp(this.columns, COLUMNS);
    if (this.type === "float16") this.program.decodeFloat16(from, to, to + count * row);
    else
      for (let i = 0; i < count; i++) {
        const [start, scale] = [to + i * row, this.scales[first + i]!];
        this.program.decodeInt8(from + i * this.stride, start, start + row, scale);
      }
    return to;
  }
}

/** The module with relaxed SIMD if the browser has it, else without; null if it has no SIMD at all. */
async function compile(): Promise<WebAssembly.Module | null> {
  if (typeof WebAssembly === "undefined") return null;
  for (const relaxed of [true, false]) {
    const bytes = assembleProgram(relaxed);
    if (!WebAssembly.validate(bytes)) continue;
    try {
      return await WebAssembly.compile(bytes);
    } catch {
      return null; // forbidden by the page's content security policy
    }
  }
  return null;
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
