/** Keeps the browser's address in sync with the page. */

import { runName } from "../model/runs";
import type { Page } from "./page.svelte";

const EDIT_PAUSE = 1500; // milliseconds: changes to the text, an edit's value or a lab's setting that are closer together share an entry

/** Pushes a history entry when another part, step, view, model, text, number, target token, attribution path, stop or lab is opened,
 * or an edit or a setting of a lab is changed, and replaces the current one otherwise.
 * Must be called while a component is initialized. */
export function syncHistory(getPage: () => Page): void {
  let lastEntry = "";
  let lastPlace = ""; // in the model
  let lastText = "";
  let lastValues = ""; // of the edits and of the lab's settings
  let changedAt = -EDIT_PAUSE;
  let generated = false; // whether the last change to the text was generated
  $effect(() => {
    const page = getPage();
    const {
      model,
      block,
      head,
      part,
      view,
      open,
      target,
      against,
      path,
      edits,
      stop,
      lesson,
      taken,
      gradient,
      chain,
      lab,
      settings,
    } = page.location;
    const place = JSON.stringify([block, head, part, page.step]);
    const text = page.location.text ?? "";
    const values = JSON.stringify([edits, settings]);
    const query = page.query;
    const entry = JSON.stringify([
      runName(model),
      view,
      open,
      target,
      against,
      path,
      edits.map(({ site }) => site),
      stop,
      lesson,
      taken,
      gradient,
      chain,
      lab,
    ]);
    if (page.shown === null && !page.isEmpty) return;
    // A generated text shares one entry, however many tokens it has; the text before it keeps its own.
    const stillTyping =
      text !== lastText &&
      (page.generation.running
        ? generated && text.startsWith(lastText)
        : performance.now() - changedAt < EDIT_PAUSE);
    const stillDragging = values !== lastValues && performance.now() - changedAt < EDIT_PAUSE;
    const isChanged = (text !== lastText && !stillTyping) || (values !== lastValues && !stillDragging);
    const isReadersStep = place !== lastPlace && !page.autoplay.playing; // autoplay would flood the history
    const moved = lastEntry !== "" && (entry !== lastEntry || isReadersStep || isChanged);
    if (text !== lastText) generated = page.generation.running;
    const isReadersChange = query !== location.search && lastEntry !== ""; // not the back button's
    if (isReadersChange && (text !== lastText || values !== lastValues)) changedAt = performance.now();
    [lastEntry, lastPlace, lastText, lastValues] = [entry, place, text, values];
    if (query === location.search) return;
    if (moved) history.pushState(null, "", query || location.pathname);
    else history.replaceState(null, "", query || location.pathname);
  });
}
