/** SHA-256 as in FIPS 180-4. The browser's own is missing on plain http pages and in files opened from disk. */

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const subtle = (globalThis.crypto as Crypto | undefined)?.subtle as SubtleCrypto | undefined;
  const digest = subtle ? new Uint8Array(await subtle.digest("SHA-256", bytes)) : computeSha256(bytes);
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The 32 bytes of the hash. */
export function computeSha256(bytes: Uint8Array): Uint8Array {
  const state = Int32Array.from(firstPrimes(8), (prime) => fractionBits(Math.sqrt(prime)));
  const constants = Int32Array.from(firstPrimes(64), (prime) => fractionBits(Math.cbrt(prime)));
  const whole = bytes.length - (bytes.length % 64);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let start = 0; start < whole; start += 64) update(state, constants, view, start);

  // The end: a bit that is set, zeros, and the length in bits, so that it fills one or two more blocks.
  const rest = bytes.length - whole;
  const end = new DataView(new ArrayBuffer(rest < 56 ? 64 : 128));
  for (let i = 0; i < rest; i++) end.setUint8(i, bytes[whole + i]!);
  end.setUint8(rest, 0x80);
  end.setBigUint64(end.byteLength - 8, BigInt(bytes.length) * 8n);
  for (let start = 0; start < end.byteLength; start += 64) update(state, constants, end, start);

  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, i) => digest.setInt32(4 * i, word));
  return new Uint8Array(digest.buffer);
}

/** Adds a block of 64 bytes to the hash. */
function update(state: Int32Array, constants: Int32Array, block: DataView, start: number): void {
  const words = new Int32Array(64);
  for (let i = 0; i < 16; i++) words[i] = block.getInt32(start + 4 * i);
  for (let i = 16; i < 64; i++) {
    const [early, late] = [words[i - 15]!, words[i - 2]!];
    const one = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const other = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    words[i] = words[i - 16]! + one + words[i - 7]! + other;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let i = 0; i < 64; i++) {
    const choice = (e & f) ^ (~e & g);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const one = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + constants[i]! + words[i]!;
    const other = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
    h = g;
    g = f;
    f = e;
    e = (d + one) | 0;
    d = c;
    c = b;
    b = a;
    a = (one + other) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((value, i) => (state[i]! += value));
}

function rotate(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits));
}

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}

/** The first 32 bits after the binary point. */
function fractionBits(value: number): number {
  return Math.floor((value % 1) * 2 ** 32) | 0;
}
