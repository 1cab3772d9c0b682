/** The texts of a model's tokens. Reads within one microtask go to the server as one request. */

import { SvelteMap } from "svelte/reactivity";
import type { ApiClient } from "../engine/client";

const MAX_TOKENS = 4096; // per request

export class Vocabulary {
  #texts = new SvelteMap<number, string>();
  // Not reactive: nothing is rendered from these.
  /* eslint-disable svelte/prefer-svelte-reactivity */
  #queued = new Set<number>();
  #requested = new Set<number>();
  /* eslint-enable svelte/prefer-svelte-reactivity */

  constructor(
    readonly api: ApiClient,
    readonly model: string,
  ) {}

  /** The text of a token if it is loaded; otherwise requests it. Reading is reactive. */
  get(id: number): string | undefined {
    const text = this.#texts.get(id);
    if (text === undefined && !this.#requested.has(id)) {
      this.#requested.add(id);
      if (this.#queued.size === 0) queueMicrotask(() => void this.#flush());
      this.#queued.add(id);
    }
    return text;
  }

  /** Loads the texts of all these tokens. */
  async load(ids: number[]): Promise<void> {
    const missing = ids.filter((id) => !this.#texts.has(id));
    for (let start = 0; start < missing.length; start += MAX_TOKENS) {
      const batch = missing.slice(start, start + MAX_TOKENS);
      const texts = await this.api.tokenTexts(this.model, batch);
      batch.forEach((id, i) => this.#texts.set(id, texts[i]!));
    }
  }

  async #flush(): Promise<void> {
    const ids = [...this.#queued];
    this.#queued.clear();
    try {
      await this.load(ids);
    } catch {
      for (const id of ids) this.#requested.delete(id); // to allow another request
    }
  }
}
