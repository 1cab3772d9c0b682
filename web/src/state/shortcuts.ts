/** Keyboard shortcuts. */

import { nextStop } from "../lectures/lectures";
import { WITHOUT_TEXT } from "./location";
import type { Page } from "./page.svelte";

/** Whether an element handles key presses itself. */
export function isFormField({ tagName }: HTMLElement): boolean {
  return /INPUT|SELECT|TEXTAREA/.test(tagName);
}

type Actions = Record<string, () => void>;

function explorerActions(page: Page): Actions {
  return {
    ArrowRight: () => page.moveStep(1),
    ArrowLeft: () => page.moveStep(-1),
    ArrowDown: () => page.selectToken(page.row + 1),
    ArrowUp: () => page.selectToken(page.row - 1),
    "]": () => page.moveHead(1),
    "[": () => page.moveHead(-1),
    PageDown: () => page.moveBlock(1),
    PageUp: () => page.moveBlock(-1),
    // If no number is open, leave Escape to the menus, which close on it.
    ...(page.openCells.length > 0 && { Escape: () => page.closeCells() }),
    p: () => page.autoplay.toggle(),
  };
}

function lectureActions(page: Page): Actions {
  return {
    ArrowRight: () => moveStop(page, 1),
    ArrowLeft: () => moveStop(page, -1),
    p: () => (page.location.presenting = true),
  };
}

/** Moves to the next or previous stop of the lectures. Returns whether there was one. */
export function moveStop(page: Page, by: number): boolean {
  const stop = nextStop(page.location.stop || page.lectures.opening, by);
  if (stop) page.goTo({ stop: stop.id });
  return stop !== null;
}

function actionsOf(page: Page): Actions {
  const { view } = page.location;
  if (view === "lectures") return lectureActions(page);
  return WITHOUT_TEXT.includes(view) ? {} : explorerActions(page); // the keys scroll what has no steps
}

/** Performs the shortcut for a key press. Returns whether there was one. */
export function handleShortcut(page: Page, event: KeyboardEvent): boolean {
  if (event.metaKey || event.ctrlKey || event.altKey || isFormField(event.target as HTMLElement))
    return false;
  const actions = actionsOf(page);
  const act = actions[event.key];
  if (!act) return false;
  event.preventDefault();
  act();
  return true;
}
