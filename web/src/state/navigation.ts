/** Which block or head comes next, of those that can be gone to. */

import type { HeadName } from "../model/headKinds";
import type { Config } from "../engine/client";

type Holds = (aim: HeadName) => boolean;

/** The same head of another block. */
export function nextBlock({ block, head }: HeadName, by: number, blocks: number, holds: Holds): HeadName {
  return firstHeld(blocks, (k) => ({ block: wrap(block + by * k, blocks), head }), holds);
}

/** In this order; from a head that is not in it, its first. */
export function nextHead(from: HeadName, by: number, order: readonly HeadName[], holds: Holds): HeadName {
  const at = order.findIndex(({ block, head }) => block === from.block && head === from.head);
  const nth = (k: number) => {
    const { block, head } = order[at < 0 ? k - 1 : wrap(at + by * k, order.length)]!;
    return { block, head };
  };
  return firstHeld(order.length, nth, holds);
}

/** All heads, as they stand in the model. */
export function headsOf({ n_block, n_head }: Pick<Config, "n_block" | "n_head">): HeadName[] {
  return Array.from({ length: n_block * n_head }, (_, i) => ({
    block: Math.floor(i / n_head),
    head: i % n_head,
  }));
}

/** Of so many, one after the other, the first that can be gone to; the last where none can. */
function firstHeld(count: number, nth: (k: number) => HeadName, holds: Holds): HeadName {
  for (let k = 1; k < count; k++) if (holds(nth(k))) return nth(k);
  return nth(count);
}

function wrap(number: number, count: number): number {
  return ((number % count) + count) % count;
}
