/** How large what stands at a site is, without asking. */

import { isOfWords, isSquare, isVector, parse } from "./sites";
import type { Config } from "../engine/client";

export function shapeOf(config: Config, length: number, name: string): [number, number] {
  const { head, part } = parse(name);
  if (isVector(name)) return [length, 1];
  if (head !== null) {
    if (isSquare(part)) return [length, length];
    return [length, part === "output" ? config.d_model : config.d_head];
  }
  if (isOfWords(part)) return [length, config.n_vocab];
  return [length, part.startsWith("hidden") ? config.d_hidden : config.d_model];
}
