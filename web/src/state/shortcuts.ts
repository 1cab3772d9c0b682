/** Keyboard shortcuts. */

import type { Page } from "./page.svelte";

/** Whether an element handles key presses itself. */
export function isFormField({ tagName }: HTMLElement): boolean {
  return /INPUT|SELECT|TEXTAREA/.test(tagName);
}

/** Returns whether the key was a shortcut. */
export function handleShortcut(page: Page, event: KeyboardEvent): boolean {
  if (event.metaKey || event.ctrlKey || event.altKey || isFormField(event.target as HTMLElement))
    return false;
  const actions: Record<string, () => void> = {
    ArrowRight: () => page.moveStep(1),
    ArrowLeft: () => page.moveStep(-1),
    ArrowDown: () => page.selectToken(page.row + 1),
    ArrowUp: () => page.selectToken(page.row - 1),
    "]": () => page.moveHead(1),
    "[": () => page.moveHead(-1),
    PageDown: () => page.moveBlock(1),
    PageUp: () => page.moveBlock(-1),
    // Otherwise Escape closes menus.
    ...(page.openCells.length > 0 && { Escape: () => page.closeCells() }),
    p: () => page.autoplay.toggle(),
  };
  const act = actions[event.key];
  if (!act) return false;
  event.preventDefault();
  act();
  return true;
}
