/** Half-precision numbers. */

/** Decodes IEEE 754 half-precision numbers. Exact, because every one of them is a float32 number. */
export function decodeFloat16(halves: Uint16Array): Float32Array {
  return Float32Array.from(halves, decodeHalf);
}

function decodeHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}
