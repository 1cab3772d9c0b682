/** Texts to try a model on, in the form that suits its tokenizer. */

import type { ApiClient } from "../engine/client";
import type { Examples } from "../engine/types";
import { runName } from "../model/runs";

export class ModelExamples {
  current = $state.raw<Examples | null>(null);
  loading = $state(false);
  #run = ""; // whose snapshots all have the same tokenizer

  constructor(readonly api: ApiClient) {}

  /** Loads them once per model or run. They are optional: without them, menus are empty. */
  async load(model: string): Promise<void> {
    const run = runName(model);
    if (run === this.#run) return;
    this.#run = run;
    this.loading = true;
    const examples = await this.api.examples(model).catch(() => null);
    if (run !== this.#run) return;
    this.loading = false;
    this.current = examples;
    if (examples === null) this.#run = "";
  }
}
