/** Stored numbers as float32, in plain JavaScript. Exact: every half-precision number is a float32 number. */

import { BYTES_PER_NUMBER, type NumberType } from "./kernels";

/** A copy of `count` numbers of a buffer, from `address` on, which is a multiple of their size. */
export function decodeNumbers(
  type: NumberType,
  buffer: ArrayBufferLike,
  address: number,
  count: number,
  scale: number,
): Float32Array {
  const stored = buffer.slice(address, address + count * BYTES_PER_NUMBER[type]);
  if (type === "float32") return new Float32Array(stored);
  if (type === "float16") return Float32Array.from(new Uint16Array(stored), decodeHalf);
  return Float32Array.from(new Int8Array(stored), (code) => code * scale);
}

function decodeHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}
