/** Keeps the browser's address in sync with the page. */

import { runName } from "../model/runs";
import type { Page } from "./page.svelte";

const EDIT_PAUSE = 1500; // milliseconds: text changes closer together share one history entry

/** Pushes a history entry when another part, view, model, text, number, target token, attribution path or stop is opened,
 * or an edit is made, and replaces the current one otherwise.
 * Must be called while a component is initialized. */
export function syncHistory(getPage: () => Page): void {
  let lastEntry = "";
  let lastText = "";
  let changedAt = -EDIT_PAUSE;
  let generated = false; // whether the last change to the text was generated
  $effect(() => {
    const page = getPage();
    const { model, block, head, part, view, open, word, against, path, edits, stop } = page.location;
    const text = page.location.text ?? "";
    const query = page.query;
    const entry = JSON.stringify([
      runName(model),
      block,
      head,
      part,
      view,
      open,
      word,
      against,
      path,
      edits,
      stop,
    ]);
    if (page.shown === null && !page.isEmpty) return;
    // A generated text shares one entry, however many tokens it has; the text before it keeps its own.
    const stillTyping =
      text !== lastText &&
      (page.generating ? generated && text.startsWith(lastText) : performance.now() - changedAt < EDIT_PAUSE);
    const moved = lastEntry !== "" && (entry !== lastEntry || (text !== lastText && !stillTyping));
    if (text !== lastText) generated = page.generating;
    if (text !== lastText && lastEntry !== "") changedAt = performance.now();
    [lastEntry, lastText] = [entry, text];
    if (query === location.search) return;
    if (moved) history.pushState(null, "", query || location.pathname);
    else history.replaceState(null, "", query || location.pathname);
  });
}
