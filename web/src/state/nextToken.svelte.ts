/** The prediction of the next token, as the sampling settings shape it. */

import { tokenProbabilities } from "../model/sampling";
import { latest } from "./latest.svelte";
import type { Page } from "./page.svelte";

/** The logits at the last position; undefined until they are loaded. */
export function nextTokenLogits(page: () => Page): { readonly current: Float32Array | undefined } {
  return latest(() => {
    const { shown, length } = page();
    return shown?.matrices.get({ name: "logits", rows: [length - 1, length] })?.values;
  });
}

/** The probability of each token; null until the logits are loaded. */
export function nextTokenProbabilities(page: () => Page): { readonly current: Float64Array | null } {
  const logits = nextTokenLogits(page);
  const probabilities = $derived(
    logits.current ? tokenProbabilities(logits.current, { ...page().location.sampling }) : null,
  );
  return {
    get current() {
      return probabilities;
    },
  };
}
