/** The models on this computer, and those that can be pulled. */

import { type ApiClient, ApiError } from "../engine/client";
import { type Problem, toProblem } from "../engine/problem";
import type { Config, Model, Pullable, PullState } from "../engine/types";
import { isSnapshot } from "../model/runs";

const POLL_INTERVAL = 400; // milliseconds, while a model loads or is pulled

export class ModelList {
  all = $state.raw<Model[]>([]);
  pullable = $state.raw<Pullable[]>([]);
  pull = $state.raw<PullState | null>(null);
  loaded = $state(false); // whether the list has arrived
  error = $state.raw<Problem | null>(null);
  failed = $state.raw<Record<string, Problem>>({}); // why models could not be opened, by name
  #snapshots = $state.raw<Record<string, Model>>({}); // the snapshots of training runs that were opened

  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly api: ApiClient) {}

  readonly pulling = $derived(this.pull?.state === "downloading" || this.pull?.state === "unpacking");
  readonly busy = $derived(this.pulling || this.all.some((model) => model.state === "loading"));

  async refresh(): Promise<void> {
    const response = await this.api.models();
    this.all = response.models;
    this.pullable = response.can_be_pulled;
    this.loaded = true;
  }

  find(name: string): Model | undefined {
    return this.all.find((model) => model.name === name) ?? this.#snapshots[name];
  }

  /** The model to start with: a loaded one if there is one. */
  get first(): Model | undefined {
    const usable = this.all.filter((model) => model.config && model.state !== "failed");
    return usable.find((model) => model.state === "loaded") ?? usable[0];
  }

  /** Loads a model. If that fails, the list shows the error. */
  async open(name: string): Promise<Model> {
    this.all = this.all.map((model) =>
      model.name === name && model.state !== "loaded" ? { ...model, state: "loading", error: null } : model,
    );
    this.failed = Object.fromEntries(Object.entries(this.failed).filter(([each]) => each !== name));
    try {
      const opened = await this.api.open(name);
      const listed = this.all.some((model) => model.name === name);
      this.all = this.all.map((model) => (model.name === name ? opened : model));
      if (!listed && !isSnapshot(name)) this.all = [opened, ...this.all]; // trained since the last refresh
      if (isSnapshot(name)) this.#snapshots = { ...this.#snapshots, [name]: opened };
      return opened;
    } catch (error) {
      const problem = toProblem(error);
      if (problem.status > 0) this.failed = { ...this.failed, [name]: problem };
      await this.refresh().catch(() => undefined);
      throw error;
    }
  }

  /** The config of a transformer. Opens the model if necessary. */
  async loadConfig(name: string): Promise<Config> {
    const known = this.find(name);
    const ready = known?.state === "loaded" || (!known && !isSnapshot(name));
    return configOf(ready ? known : await this.open(name), name);
  }

  /** The config of a model that is loaded; null if it must be loaded first. */
  readyConfig(name: string): Config | null {
    const known = this.find(name);
    return known?.state === "loaded" ? configOf(known, name) : null;
  }

  /** Polls the server while a model loads or is pulled. */
  async poll(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#try(async () => {
      const wasPulling = this.pulling;
      this.pull = await this.api.pullState();
      if (!this.pulling || !wasPulling) await this.refresh();
    });
    if (this.busy) this.#timer = setTimeout(() => void this.poll(), POLL_INTERVAL);
  }

  async startPull(name: string): Promise<void> {
    await this.#try(async () => {
      this.pull = await this.api.pull(name);
    });
    await this.poll();
  }

  async cancelPull(): Promise<void> {
    await this.#try(async () => {
      this.pull = await this.api.cancelPull();
    });
  }

  async #try(task: () => Promise<void>): Promise<void> {
    try {
      await task();
      this.error = null;
    } catch (error) {
      this.error = toProblem(error);
    }
  }
}

function configOf(details: Model | undefined, name: string): Config {
  if (details?.kind && details.kind !== "transformer") {
    const { kind } = details;
    const message = `${details.name} is of kind ${kind}: it has no heads to show`;
    throw new ApiError(400, message, "no_heads", { name: details.name, kind });
  }
  if (!details?.config) throw new ApiError(404, `there is no model ${name}`, "model_not_found", { name });
  return details.config as Config;
}
