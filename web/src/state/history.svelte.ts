/** The address follows the page: what is opened can be gone back from, the rest only replaces it. */

import { runOf } from "../model/runs";
import type { Page } from "./page.svelte";

const ONE_GO = 1500; // milliseconds between two changes of the text: letters that are typed, words that are written

/** To be called as a component is made. */
export function followAddress(whose: () => Page): void {
  let stood = "";
  let said = "";
  let changed = -ONE_GO;
  $effect(() => {
    const page = whose();
    const { model, text, block, head, part, view } = page.place;
    const query = page.query;
    const stands = JSON.stringify([runOf(model), block, head, part, view]);
    if (page.shown === null) return;
    const goesOn = text !== said && performance.now() - changed < ONE_GO;
    const moved = stood !== "" && (stands !== stood || (text !== said && !goesOn));
    if (text !== said && stood !== "") changed = performance.now();
    [stood, said] = [stands, text];
    if (query === location.search) return;
    if (moved) history.pushState(null, "", query || location.pathname);
    else history.replaceState(null, "", query || location.pathname);
  });
}
