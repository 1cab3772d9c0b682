/** The names around attention patterns: of blocks and heads, or of each head with its score. */

import type { Messages } from "../messages/en";
import { percent } from "../messages/format.svelte";
import type { HeadIndex } from "../model/headKinds";
import { GAP, type HeadGrid, MARGIN, NAMED_SIDE, patternPosition } from "./headGrid";

const NUMBER_WIDTH = 22; // pixels that a head's number needs

export interface Caption {
  text: string;
  strong: boolean; // names the selected block or head
  x: number;
  y: number;
  width: number;
}

/** The names of the heads above the patterns, and of the blocks to their left. */
export function blockCaptions(
  grid: HeadGrid,
  blocks: number,
  heads: number,
  selected: HeadIndex,
  words: Messages,
): Caption[] {
  const every = Math.ceil(NUMBER_WIDTH / (grid.width + GAP)); // if columns are narrow, only every n-th is numbered
  const bands = Math.ceil(blocks / grid.rows);
  const headNames = Array.from({ length: bands * heads }, (_, i) => {
    const [band, head] = [Math.floor(i / heads), i % heads];
    return {
      text: grid.side >= NAMED_SIDE ? words.heads.head(head) : head % every === 0 ? String(head) : "",
      strong: head === selected.head,
      x: patternPosition(grid, band * grid.rows * heads + head)[0],
      y: 0,
      width: grid.width,
    };
  });
  const blockNames = Array.from({ length: blocks }, (_, block) => {
    const [x, y] = patternPosition(grid, block * heads);
    return {
      text: words.heads.block(block),
      strong: block === selected.block,
      x: x - MARGIN,
      y: y + grid.side / 2 - 9,
      width: MARGIN - 8,
    };
  });
  return [...headNames, ...blockNames];
}

/** The name of each head below its pattern, with its score; a small pattern has room for its score alone. */
export function headCaptions(
  grid: HeadGrid,
  heads: readonly HeadIndex[],
  selected: HeadIndex,
  scoreOf: (head: HeadIndex) => number | null,
): Caption[] {
  if (grid.caption === 0) return [];
  return heads.map(({ block, head }, number) => {
    const [x, y] = patternPosition(grid, number);
    const score = scoreOf({ block, head });
    const name = `${block}.${head}`;
    const full = score === null ? name : `${name} · ${percent(score)}`;
    return {
      text: grid.side >= NAMED_SIDE ? full : score === null ? name : percent(score),
      strong: block === selected.block && head === selected.head,
      x: x - 3,
      y: y + grid.side - 1,
      width: grid.width + 6,
    };
  });
}
