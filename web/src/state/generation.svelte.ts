/** Appends tokens to the text: the one that the reader chose, or one sampled from the prediction. */

import type { ApiClient } from "../engine/client";
import { sampleToken, tokenProbabilities } from "../model/sampling";
import type { Area } from "../model/sites";
import type { Connection } from "./connection.svelte";
import type { PageLocation } from "./location";
import type { ShownText } from "./selection.svelte";

const PAUSE = 60; // milliseconds between tokens

/** The page whose text is extended. */
interface ExtendedPage {
  readonly api: ApiClient;
  readonly connection: Connection;
  readonly location: PageLocation;
  readonly shown: ShownText | null;
  readonly canGenerate: boolean;
  extend(shown: ShownText, id: number, piece: string): Promise<void>;
  abortRun(): void;
}

export class Generation {
  running = $state(false); // whether tokens are being appended one after another

  readonly #page: ExtendedPage;
  #appending = Promise.resolve();
  #edition = 0; // how often another text was typed: tokens chosen for an earlier one are not appended

  constructor(page: ExtendedPage) {
    this.#page = page;
  }

  /** Appends a token by its id, because a token may be part of a character or have no text at all. */
  append(id: number, piece: string): Promise<void> {
    return this.#afterAppending(() => Promise.resolve({ id, text: piece }));
  }

  /** Samples the next token from the prediction for the text as it is by then, and appends it. */
  appendNext(): Promise<void> {
    return this.#afterAppending(async ({ input, trace, matrices }) => {
      const { length } = trace.ids;
      const area: Area = { name: "logits", rows: [length - 1, length] };
      const logits = matrices.peek(area) ?? (await this.#page.api.read(input, [area]))[0]!;
      const probabilities = tokenProbabilities(logits.values, { ...this.#page.location.sampling });
      const id = sampleToken(probabilities, Math.random());
      return { id, text: trace.next.find((token) => token.id === id)?.text ?? "" };
    });
  }

  /** Appends one token after another until it is stopped, or another text is typed. */
  async toggle(): Promise<void> {
    this.running = !this.running;
    while (this.running && !this.#page.connection.problem) {
      await this.appendNext();
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    this.running = false;
  }

  /** Stops when the reader starts to edit the text. A token that is being computed is not appended. */
  stop(): void {
    if (!this.running) return;
    this.leaveText();
    this.#page.abortRun();
  }

  /** Stops because the text is replaced. */
  leaveText(): void {
    this.running = false;
    this.#edition++;
  }

  /** Appends a token once the ones before it are appended, so that none is lost. */
  #afterAppending(choose: (shown: ShownText) => Promise<{ id: number; text: string }>): Promise<void> {
    const edition = this.#edition;
    this.#appending = this.#appending.then(() =>
      this.#page.connection.guard(async () => {
        const { shown, canGenerate } = this.#page;
        if (shown === null || !canGenerate || edition !== this.#edition) return;
        const { id, text } = await choose(shown);
        if (edition === this.#edition) await this.#page.extend(shown, id, text);
      }),
    );
    return this.#appending;
  }
}
