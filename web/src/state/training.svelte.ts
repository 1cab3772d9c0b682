/** The training runs and the steps of those on screen. */

import { SvelteMap } from "svelte/reactivity";
import type { ApiClient } from "../engine/client";
import { type Problem, toProblem } from "../engine/problem";
import type { Run, RunRequest, RunStep } from "../engine/types";
import { mergeSteps } from "../layout/curves";
import type { Resource } from "./resource.svelte";

const ACTIVE_INTERVAL = 1000; // milliseconds between polls while a run trains
const IDLE_INTERVAL = 5000; // and otherwise, for runs started elsewhere

export class TrainingRuns implements Resource<Run[]> {
  current = $state.raw<Run[] | null>(null); // null until they are loaded
  canStart = $state(false);
  active = $state<string | null>(null); // the run that the server is training
  finished = $state<string | null>(null); // the last one that it finished while the page was open
  error = $state.raw<Problem | null>(null); // of the last poll
  refusal = $state.raw<Problem | null>(null); // of the last start, stop, resume or extension
  starting = $state(false);
  readonly steps = new SvelteMap<string, RunStep[]>(); // by run
  readonly loading = $derived(this.current === null && this.error === null);
  readonly speeds = new SvelteMap<string, number>(); // tokens per second

  #watched: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #poll = 0; // number of the current polling loop; older ones stop

  constructor(readonly api: ApiClient) {}

  get runs(): Run[] {
    return this.current ?? [];
  }

  find(name: string): Run | undefined {
    return this.runs.find((run) => run.name === name);
  }

  async refresh(): Promise<void> {
    this.#update(await this.api.runs());
  }

  /** Loads the steps of a run once. */
  async loadSteps(name: string): Promise<void> {
    if (!this.steps.has(name)) await this.#load(() => this.#fetchSteps(name));
  }

  /** Polls these runs until `watch` or `unwatch` is called. */
  watch(names: string[]): void {
    this.#watched = names;
    void this.#pollRuns(++this.#poll);
  }

  /** Polls at once after an error. */
  retry(): void {
    this.error = null;
    this.watch(this.#watched);
  }

  unwatch(): void {
    this.#poll++;
    clearTimeout(this.#timer);
  }

  async #pollRuns(poll: number): Promise<void> {
    clearTimeout(this.#timer);
    await this.#load(async () => {
      await this.refresh();
      const watched = this.runs.filter(({ name }) => this.#watched.includes(name));
      for (const { name, state } of watched) {
        const complete = state === "finished" && this.steps.has(name) && this.#hasAllSteps(name);
        if (state !== "starting" && state !== "failed" && !complete) await this.#fetchSteps(name);
      }
    });
    if (poll !== this.#poll) return;
    const active = this.active !== null || this.runs.some(({ state }) => state === "running");
    this.#timer = setTimeout(() => void this.#pollRuns(poll), active ? ACTIVE_INTERVAL : IDLE_INTERVAL);
  }

  #hasAllSteps(name: string): boolean {
    return this.steps.get(name)?.at(-1)?.step === this.find(name)?.steps_done;
  }

  async #fetchSteps(name: string): Promise<void> {
    const before = this.steps.get(name) ?? [];
    const last = before.at(-1)?.step ?? 0;
    const metrics = await this.api.runMetrics(name, last);
    this.current = this.runs.map((run) => (run.name === name ? metrics.run : run));
    // A run that resumed from a checkpoint may have fewer steps than before: fetch them all again.
    const rewound = metrics.run.steps_done < last;
    const steps = rewound ? (await this.api.runMetrics(name, 0)).steps : metrics.steps;
    if (rewound || steps.length > 0 || !this.steps.has(name))
      this.steps.set(name, mergeSteps(rewound ? [] : before, steps));
    if (metrics.tokens_per_second !== null) this.speeds.set(name, metrics.tokens_per_second);
  }

  /** Starts a run and returns whether the server accepted it. */
  async start(request: RunRequest): Promise<boolean> {
    this.starting = true;
    const accepted = await this.#request(async () => {
      this.steps.delete(request.name);
      this.#update(await this.api.train(request));
    });
    this.starting = false;
    return accepted;
  }

  async stop(name: string): Promise<void> {
    await this.#request(async () => this.#update(await this.api.stopRun(name)));
  }

  async resume(name: string): Promise<void> {
    await this.#request(async () => this.#update(await this.api.resumeRun(name)));
    this.watch(this.#watched);
  }

  /** Extends a finished run and returns whether the server accepted it. */
  async extend(name: string, minutes: number): Promise<boolean> {
    const accepted = await this.#request(async () => this.#update(await this.api.resumeRun(name, minutes)));
    if (accepted) this.watch(this.#watched);
    return accepted;
  }

  #update(list: Awaited<ReturnType<ApiClient["runs"]>>): void {
    this.current = list.runs;
    if (this.active !== null && list.now === null && this.find(this.active)?.state === "finished")
      this.finished = this.active;
    this.canStart = list.can_start;
    this.active = list.now;
  }

  async #load(task: () => Promise<void>): Promise<void> {
    this.error = await attempt(task);
  }

  async #request(task: () => Promise<void>): Promise<boolean> {
    this.refusal = await attempt(task);
    return this.refusal === null;
  }
}

async function attempt(task: () => Promise<void>): Promise<Problem | null> {
  try {
    await task();
    return null;
  } catch (error) {
    return toProblem(error);
  }
}
