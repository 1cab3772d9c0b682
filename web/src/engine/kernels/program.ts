/** The WebAssembly functions of the kernels.
 *
 * A row of numbers starts at an address and takes a multiple of 32 bytes as float32, padded with zeros, so
 * that no loop has a remainder.
 */

import {
  add,
  addFloats,
  and,
  assemble,
  type Code,
  doWhile,
  extendHigh,
  extendLow,
  get,
  i32,
  isAtLeast,
  load,
  loadInt8,
  type Local,
  makeLocals,
  multiplyAdd,
  multiplyFloats,
  or,
  repeatFloat,
  repeatInteger,
  set,
  shiftLeft,
  shuffle,
  store,
  subtract,
  toFloat,
  type WasmFunction,
} from "./assembler";

export const COLUMNS = 8; // a row's length is padded to a multiple of this
export const OUTPUTS = 4; // rows of W that x is multiplied by in one pass
export const MOST_VECTORS = 3; // rows of x in one pass: 3 × 4 sums and 4 operands fill 16 registers

export type Multiply = (x: number, w: number, y: number, row: number, yRow: number, outputs: number) => void;

/** What the module exports. All addresses and sizes are in bytes. */
export interface Program {
  multiply1: Multiply;
  multiply2: Multiply;
  multiply3: Multiply;
  decodeFloat16: (from: number, to: number, end: number) => void;
  decodeInt8: (from: number, to: number, end: number, scale: number) => void;
}

/** The module. `relaxed` uses fused multiply-add, which some browsers do not have yet. */
export function assembleProgram(relaxed: boolean): Uint8Array<ArrayBuffer> {
  const multiplies = [1, 2, 3].map((vectors) => multiply(vectors, relaxed));
  return assemble([...multiplies, decodeFloat16(), decodeInt8()]);
}

/** y = x Wᵀ for a few rows of x and any multiple of four rows of W.
 *
 * Each of the 4 · `vectors` products has a register with four partial sums.
 */
function multiply(vectors: number, relaxed: boolean): WasmFunction {
  const { declare, all } = makeLocals();
  const [x, w, y, row, yRow, outputs] = repeat(6, () => declare("i32"));
  const parameters = all.slice();
  const xs = repeat(vectors, () => declare("i32")); // addresses
  const ws = repeat(OUTPUTS, () => declare("i32"));
  const end = declare("i32");
  const operands = repeat(vectors, () => declare("v128"));
  const operand = declare("v128");
  const sums = repeat(vectors, () => repeat(OUTPUTS, () => declare("v128")));

  const accumulate = (sum: Local, a: Local, b: Local): Code =>
    set(
      sum,
      relaxed ? multiplyAdd(get(a), get(b), get(sum)) : addFloats(get(sum), multiplyFloats(get(a), get(b))),
    );
  const fourColumns = (offset: number): Code => [
    ...xs.flatMap((address, i) => set(operands[i]!, load(get(address), offset))),
    ...ws.flatMap((address, j) => [
      ...set(operand, load(get(address), offset)),
      ...sums.flatMap((ofVector, i) => accumulate(ofVector[j]!, operands[i]!, operand)),
    ]),
  ];
  const allColumns = doWhile(
    [
      ...fourColumns(0),
      ...fourColumns(16),
      ...[...xs, ...ws].flatMap((address) => set(address, add(get(address), i32(4 * COLUMNS)))),
    ],
    subtract(get(end), get(xs[0]!)),
  );
  const fourOutputs = [
    ...startRows(xs, x!, row!),
    ...startRows(ws, w!, row!),
    ...sums.flat().flatMap((sum) => set(sum, repeatInteger(0))),
    ...allColumns,
    ...set(xs[0]!, get(y!)),
    ...sums.flatMap((ofVector) => [
      ...store(get(xs[0]!), sumLanes(ofVector.map(get) as [Code, Code, Code, Code])),
      ...set(xs[0]!, add(get(xs[0]!), get(yRow!))),
    ]),
    ...set(w!, get(ws.at(-1)!)), // it has arrived at the next row
    ...set(y!, add(get(y!), i32(16))),
    ...set(outputs!, subtract(get(outputs!), i32(OUTPUTS))),
  ];
  const body = [...set(end, add(get(x!), get(row!))), ...doWhile(fourOutputs, get(outputs!))];
  return { name: `multiply${vectors}`, parameters, locals: all.slice(parameters.length), body };
}

/** The addresses of consecutive rows. */
function startRows(addresses: readonly Local[], first: Local, row: Local): Code {
  return addresses.flatMap((address, i) =>
    set(address, i === 0 ? get(first) : add(get(addresses[i - 1]!), get(row))),
  );
}

/** A vector of the sums of four vectors. */
function sumLanes([a, b, c, d]: [Code, Code, Code, Code]): Code {
  const halves = (one: Code, other: Code) =>
    addFloats(shuffle(one, other, [0, 4, 1, 5]), shuffle(one, other, [2, 6, 3, 7]));
  const [ab, cd] = [halves(a, b), halves(c, d)]; // [a0 + a2, b0 + b2, a1 + a3, b1 + b3]
  return addFloats(shuffle(ab, cd, [0, 1, 4, 5]), shuffle(ab, cd, [2, 3, 6, 7]));
}

/** Half-precision numbers to float32, eight at a time, until `to` reaches `end`. */
function decodeFloat16(): WasmFunction {
  const { declare, all } = makeLocals();
  const [from, to, end] = repeat(3, () => declare("i32"));
  const parameters = all.slice();
  const [halves, half] = repeat(2, () => declare("v128"));
  // Moved to its place in a float32, the exponent is too small by 112. An exponent of 31 means infinity or NaN.
  const magnitude = shiftLeft(and(get(half!), repeatInteger(0x7fff)), 13);
  const isInfinite = isAtLeast(and(get(half!), repeatInteger(0x7fff)), repeatInteger(0x7c00));
  const sign = shiftLeft(and(get(half!), repeatInteger(0x8000)), 16);
  const scaled = multiplyFloats(magnitude, repeatInteger((127 + 112) << 23));
  const decoded = or(or(scaled, and(isInfinite, repeatInteger(0x7f800000))), sign);
  const body = doWhile(
    [
      ...set(halves!, load(get(from!))),
      ...set(half!, extendLow.unsigned(get(halves!))),
      ...store(get(to!), decoded),
      ...set(half!, extendHigh.unsigned(get(halves!))),
      ...store(get(to!), decoded, 16),
      ...set(from!, add(get(from!), i32(16))),
      ...set(to!, add(get(to!), i32(32))),
    ],
    subtract(get(end!), get(to!)),
  );
  return { name: "decodeFloat16", parameters, locals: all.slice(parameters.length), body };
}

/** Signed bytes times a scale to float32, eight at a time, until `to` reaches `end`. */
function decodeInt8(): WasmFunction {
  const { declare, all } = makeLocals();
  const [from, to, end] = repeat(3, () => declare("i32"));
  const scale = declare("f32");
  const parameters = all.slice();
  const [codes, scales] = repeat(2, () => declare("v128"));
  const decoded = (four: Code) => multiplyFloats(toFloat(four), get(scales!));
  const body = [
    ...set(scales!, repeatFloat(get(scale))),
    ...doWhile(
      [
        ...set(codes!, loadInt8(get(from!))),
        ...store(get(to!), decoded(extendLow.signed(get(codes!)))),
        ...store(get(to!), decoded(extendHigh.signed(get(codes!))), 16),
        ...set(from!, add(get(from!), i32(8))),
        ...set(to!, add(get(to!), i32(32))),
      ],
      subtract(get(end!), get(to!)),
    ),
  ];
  return { name: "decodeInt8", parameters, locals: all.slice(parameters.length), body };
}

function repeat<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}
