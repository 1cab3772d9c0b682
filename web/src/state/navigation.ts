/** Which part, block or head comes next. */

import type { Config } from "../engine/types";
import type { HeadIndex } from "../model/headKinds";
import { type PartName, PARTS } from "../model/steps";

type CanShow = (target: HeadIndex) => boolean;

/** The part after or before one, through all blocks from the embedding to the next word; null at either end. */
export function nextPart(
  { block }: HeadIndex,
  part: PartName,
  by: number,
  { n_block }: Pick<Config, "n_block">,
  canShow: (target: { part: PartName; block: number }) => boolean,
): { part: PartName; block: number } | null {
  const inBlock = PARTS.slice(1, -1);
  const path = [
    { part: PARTS[0]!, block: 0 },
    ...Array.from({ length: n_block }, (_, i) => inBlock.map((part) => ({ part, block: i }))).flat(),
    { part: PARTS.at(-1)!, block: n_block - 1 },
  ];
  const isHere = (at: (typeof path)[number]) =>
    at.part === part && (at.block === block || !inBlock.includes(part));
  const [here, step] = [path.findIndex(isHere), Math.sign(by)];
  for (let i = here + step; i >= 0 && i < path.length; i += step) if (canShow(path[i]!)) return path[i]!;
  return null;
}

/** The same head in another block. */
export function nextBlock(
  { block, head }: HeadIndex,
  by: number,
  blocks: number,
  canShow: CanShow,
): HeadIndex {
  return firstAvailable(blocks, (k) => ({ block: wrap(block + by * k, blocks), head }), canShow);
}

/** The next head in this order, or the first one if the current head is not in it. */
export function nextHead(
  from: HeadIndex,
  by: number,
  order: readonly HeadIndex[],
  canShow: CanShow,
): HeadIndex {
  const at = order.findIndex(({ block, head }) => block === from.block && head === from.head);
  const nth = (k: number) => {
    const { block, head } = order[at < 0 ? k - 1 : wrap(at + by * k, order.length)]!;
    return { block, head };
  };
  return firstAvailable(order.length, nth, canShow);
}

/** All heads in the order of the model. */
export function allHeads({ n_block, n_head }: Pick<Config, "n_block" | "n_head">): HeadIndex[] {
  return Array.from({ length: n_block * n_head }, (_, i) => ({
    block: Math.floor(i / n_head),
    head: i % n_head,
  }));
}

/** The first of `count` candidates that can be shown, or the last candidate if none can. */
function firstAvailable(count: number, nth: (k: number) => HeadIndex, canShow: CanShow): HeadIndex {
  for (let k = 1; k < count; k++) if (canShow(nth(k))) return nth(k);
  return nth(count);
}

function wrap(number: number, count: number): number {
  return ((number % count) + count) % count;
}
