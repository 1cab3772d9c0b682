/** A small assembler for WebAssembly: functions that return the bytes of instructions, operands first.
 *
 * The opcodes are those of the WebAssembly specification: https://webassembly.github.io/spec/core/binary/
 */

export type Code = readonly number[];

export type ValueType = "i32" | "f32" | "v128";

const VALUE_TYPES: Record<ValueType, number> = { i32: 0x7f, f32: 0x7d, v128: 0x7b };

/** A local variable of a function. Parameters come first. */
export interface Local {
  index: number;
  type: ValueType;
}

export const get = ({ index }: Local): Code => [0x20, ...unsigned(index)];
export const set = ({ index }: Local, value: Code): Code => [...value, 0x21, ...unsigned(index)];

export const i32 = (value: number): Code => [0x41, ...signed(value)];
export const add = (a: Code, b: Code): Code => [...a, ...b, 0x6a];
export const subtract = (a: Code, b: Code): Code => [...a, ...b, 0x6b];

/** Runs the body once, and again as long as the condition is not zero. */
export const doWhile = (body: Code, condition: Code): Code => [
  ...[0x03, 0x40], // loop without a result
  ...body,
  ...condition,
  ...[0x0d, 0x00, 0x0b], // branch to the loop's start; end
];

// Vectors of 128 bits.
const simd = (opcode: number, ...immediates: number[]): Code => [0xfd, ...unsigned(opcode), ...immediates];
const unary =
  (opcode: number) =>
  (a: Code): Code => [...a, ...simd(opcode)];
const binary =
  (opcode: number) =>
  (a: Code, b: Code): Code => [...a, ...b, ...simd(opcode)];

export const load = (address: Code, offset = 0): Code => [...address, ...simd(0x00, 0, ...unsigned(offset))];
/** Eight signed bytes as eight 16-bit integers. */
export const loadInt8 = (address: Code): Code => [...address, ...simd(0x01, 0, 0)];
export const store = (address: Code, value: Code, offset = 0): Code => [
  ...address,
  ...value,
  ...simd(0x0b, 0, ...unsigned(offset)),
];

/** Four 32-bit numbers of `a` (0 to 3) and `b` (4 to 7). */
export const shuffle = (a: Code, b: Code, lanes: readonly number[]): Code => [
  ...a,
  ...b,
  ...simd(0x0d, ...lanes.flatMap((lane) => [0, 1, 2, 3].map((byte) => 4 * lane + byte))),
];

/** Four times the same integer. */
export const repeatInteger = (value: number): Code => [...i32(value), ...simd(0x11)];
export const repeatFloat = unary(0x13);
export const and = binary(0x4e);
export const or = binary(0x50);
export const isAtLeast = binary(0x3f); // signed integers; all bits of a lane are set where it holds
export const shiftLeft = (a: Code, bits: number): Code => [...a, ...i32(bits), ...simd(0xab)];
export const extendLow = { signed: unary(0xa7), unsigned: unary(0xa9) }; // the first four 16-bit integers
export const extendHigh = { signed: unary(0xa8), unsigned: unary(0xaa) }; // the last four
export const toFloat = unary(0xfa);
export const addFloats = binary(0xe4);
export const multiplyFloats = binary(0xe6);
/** a · b + c, rounded once or twice, as the processor prefers (relaxed SIMD). */
export const multiplyAdd = (a: Code, b: Code, c: Code): Code => [...a, ...b, ...c, ...simd(0x105)];

export interface WasmFunction {
  name: string;
  parameters: Local[];
  locals: Local[];
  body: Code;
}

/** Assigns numbers to the locals of a function: `declare("i32")` returns the next one. */
export function makeLocals(): { declare: (type: ValueType) => Local; all: Local[] } {
  const all: Local[] = [];
  const declare = (type: ValueType): Local => {
    const local = { index: all.length, type };
    all.push(local);
    return local;
  };
  return { declare, all };
}

/** A module that exports the functions and imports its memory as `page.memory`. */
export function assemble(functions: readonly WasmFunction[]): Uint8Array<ArrayBuffer> {
  const types = functions.map(({ parameters }) => [0x60, ...vector(parameters.map(typeOf)), 0x00]);
  const memory = [...text("page"), ...text("memory"), 0x02, 0x00, 0x00];
  const exports = functions.map(({ name }, i) => [...text(name), 0x00, ...unsigned(i)]);
  const bodies = functions.map(({ locals, body }) => {
    const code = [...vector(locals.map((local) => [0x01, ...typeOf(local)])), ...body, 0x0b];
    return [...unsigned(code.length), ...code];
  });
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00], // "\0asm", version 1
    ...section(1, vector(types)),
    ...section(2, vector([memory])),
    ...section(3, vector(functions.map((_, i) => unsigned(i)))),
    ...section(7, vector(exports)),
    ...section(10, vector(bodies)),
  ]);
}

const typeOf = ({ type }: Local): Code => [VALUE_TYPES[type]];

function section(id: number, content: Code): Code {
  return [id, ...unsigned(content.length), ...content];
}

function vector(items: readonly Code[]): Code {
  return [...unsigned(items.length), ...items.flat()];
}

function text(name: string): Code {
  return vector([...new TextEncoder().encode(name)].map((byte) => [byte]));
}

/** LEB128: seven bits per byte, the lowest first. */
function unsigned(value: number): Code {
  return value < 128 ? [value] : [(value & 127) | 128, ...unsigned(value >>> 7)];
}

function signed(value: number): Code {
  const last = value >= -64 && value < 64;
  return last ? [value & 127] : [(value & 127) | 128, ...signed(value >> 7)];
}
