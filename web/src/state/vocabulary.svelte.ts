/** What the tokens of a model say. What is asked for in one moment goes to the server as one request. */

import { SvelteMap } from "svelte/reactivity";
import type { Server } from "../engine/client";

const MOST = 4096; // words of one request

export class Vocabulary {
  #known = new SvelteMap<number, string>();
  // Nobody is told when these change: they are no state.
  /* eslint-disable svelte/prefer-svelte-reactivity */
  #wanted = new Set<number>();
  #asked = new Set<number>();
  /* eslint-enable svelte/prefer-svelte-reactivity */

  constructor(
    readonly server: Server,
    readonly model: string,
  ) {}

  /** The text, or nothing yet: then it is on its way, and who asks is told when it is there. */
  get(id: number): string | undefined {
    const found = this.#known.get(id);
    if (found === undefined && !this.#asked.has(id)) {
      this.#asked.add(id);
      if (this.#wanted.size === 0) queueMicrotask(() => void this.#send());
      this.#wanted.add(id);
    }
    return found;
  }

  /** All of these, before they are needed. */
  async learn(ids: number[]): Promise<void> {
    const missing = ids.filter((id) => !this.#known.has(id));
    for (let start = 0; start < missing.length; start += MOST) {
      const some = missing.slice(start, start + MOST);
      const words = await this.server.words(this.model, some);
      some.forEach((id, i) => this.#known.set(id, words[i]!));
    }
  }

  async #send(): Promise<void> {
    const ids = [...this.#wanted];
    this.#wanted.clear();
    try {
      await this.learn(ids);
    } catch {
      for (const id of ids) this.#asked.delete(id); // they keep their numbers until they are asked for again
    }
  }
}
