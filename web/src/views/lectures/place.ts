/** The head and the token that a figure shows: those chosen in it or, where none is (-1), the page's. */

import type { ModelPlace } from "../../lectures/lecture000";
import type { Page } from "../../state/page.svelte";

export function placeOf(page: Page, { block, head, row }: ModelPlace): ModelPlace {
  const { n_block, n_head } = page.config!;
  return {
    block: block < 0 ? page.block : Math.min(block, n_block - 1),
    head: head < 0 ? page.head : Math.min(head, n_head - 1),
    row: rowOf(page, row),
  };
}

export function rowOf(page: Page, row: number): number {
  return row < 0 ? page.row : Math.min(row, page.length - 1);
}

/** At most `most` of the numbers from 0 to `count` - 1, evenly spread, including the first and the last. */
export function spread(count: number, most: number): number[] {
  const size = Math.min(count, most);
  return Array.from({ length: size }, (_, i) => Math.round((i * (count - 1)) / Math.max(1, size - 1)));
}
