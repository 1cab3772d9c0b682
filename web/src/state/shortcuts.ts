/** What keys do, wherever one is. */

import type { Page } from "./page.svelte";

/** Whether keys are for what is typed or chosen there. */
export function isField({ tagName }: HTMLElement): boolean {
  return /INPUT|SELECT|TEXTAREA/.test(tagName);
}

/** Whether the key was one of ours. */
export function press(page: Page, event: KeyboardEvent): boolean {
  if (event.metaKey || event.ctrlKey || event.altKey || isField(event.target as HTMLElement)) return false;
  const keys: Record<string, () => void> = {
    ArrowRight: () => page.pageStep(1),
    ArrowLeft: () => page.pageStep(-1),
    ArrowDown: () => page.follow(page.row + 1),
    ArrowUp: () => page.follow(page.row - 1),
    "]": () => page.pageHead(1),
    "[": () => page.pageHead(-1),
    PageDown: () => page.pageBlock(1),
    PageUp: () => page.pageBlock(-1),
    Escape: () => page.close(),
    p: () => page.player.toggle(),
  };
  const act = keys[event.key];
  if (!act) return false;
  event.preventDefault();
  act();
  return true;
}
