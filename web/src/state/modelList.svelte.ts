/** The models that there are, and what can be pulled: what the picker shows. */

import { isSnapshot } from "../model/runs";
import { type Problem, problemOf } from "../engine/problem";
import {
  type Config,
  type Model,
  type Pullable,
  type PullState,
  type Server,
  ServerError,
} from "../engine/client";

const OFTEN = 400; // milliseconds between two looks at what is under way

export class Collection {
  models = $state.raw<Model[]>([]);
  pullable = $state.raw<Pullable[]>([]);
  pull = $state.raw<PullState | null>(null);
  known = $state(false);
  error = $state.raw<Problem | null>(null);
  #snapshots = $state.raw<Record<string, Model>>({}); // of runs: those that were opened

  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly server: Server) {}

  readonly pulling = $derived(this.pull?.state === "downloading" || this.pull?.state === "unpacking");
  readonly busy = $derived(this.pulling || this.models.some((each) => each.state === "loading"));

  async refresh(): Promise<void> {
    const listed = await this.server.models();
    this.models = listed.models;
    this.pullable = listed.can_be_pulled;
    this.known = true;
  }

  find(name: string): Model | undefined {
    return this.models.find((each) => each.name === name) ?? this.#snapshots[name];
  }

  /** The one to begin with: one that is loaded, else the first that may be. */
  get first(): Model | undefined {
    const usable = this.models.filter((each) => each.config && each.state !== "failed");
    return usable.find((each) => each.state === "loaded") ?? usable[0];
  }

  /** Have a model loaded; what is wrong with it is shown at its place in the list. */
  async open(name: string): Promise<Model> {
    this.models = this.models.map((each) =>
      each.name === name && each.state !== "loaded" ? { ...each, state: "loading", error: null } : each,
    );
    try {
      const opened = await this.server.open(name);
      const known = this.models.some((each) => each.name === name);
      this.models = this.models.map((each) => (each.name === name ? opened : each));
      if (!known && !isSnapshot(name)) this.models = [opened, ...this.models]; // trained since
      if (isSnapshot(name)) this.#snapshots = { ...this.#snapshots, [name]: opened };
      return opened;
    } catch (error) {
      await this.refresh().catch(() => undefined);
      throw error;
    }
  }

  /** Of a model that can be looked into, opened where it is not. */
  async configOf(name: string): Promise<Config> {
    let details = this.find(name);
    const there = details?.state === "loaded" || (!details && !isSnapshot(name));
    if (!there) details = await this.open(name);
    if (details?.kind && details.kind !== "transformer") {
      const { kind } = details;
      const says = `${details.name} is of kind ${kind}: it has no heads to show`;
      throw new ServerError(400, says, "no_heads", { name: details.name, kind });
    }
    if (!details?.config)
      throw new ServerError(404, `there is no model ${name}`, "model_not_found", { name });
    return details.config as Config;
  }

  /** Look again and again as long as something is under way. */
  async watch(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#try(async () => {
      const before = this.pulling;
      this.pull = await this.server.pulling();
      if (!this.pulling || !before) await this.refresh();
    });
    if (this.busy) this.#timer = setTimeout(() => void this.watch(), OFTEN);
  }

  async start(name: string): Promise<void> {
    await this.#try(async () => {
      this.pull = await this.server.pull(name);
    });
    await this.watch();
  }

  async cancel(): Promise<void> {
    await this.#try(async () => {
      this.pull = await this.server.cancelPull();
    });
  }

  async #try(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.error = null;
    } catch (error) {
      this.error = problemOf(error);
    }
  }
}
