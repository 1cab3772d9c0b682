/** Reproducible random numbers: the same seed gives the same numbers on every machine. */

/** Mulberry32: uniform numbers from 0 to 1. */
export function makeRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Uniform numbers from -size to size. */
export function uniform(count: number, size: number, seed: number): number[] {
  const random = makeRandom(seed);
  return Array.from({ length: count }, () => size * (2 * random() - 1));
}

/** A seed for a word (FNV-1a over its UTF-16 code units). */
export function seedOf(word: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
