/** The training runs: which there are, how those that are looked at go, and what can be done with them. */

import { SvelteMap } from "svelte/reactivity";
import { joinSteps } from "../layout/curves";
import { type Problem, problemOf } from "../engine/problem";
import type { Run, RunRequest, RunStep, Server } from "../engine/client";

const OFTEN = 1000; // milliseconds between two looks while something trains
const SELDOM = 5000; // and while nothing does, for what is begun elsewhere

export class Training {
  runs = $state.raw<Run[]>([]);
  canStart = $state(false);
  now = $state<string | null>(null); // the run that the server trains
  known = $state(false);
  error = $state.raw<Problem | null>(null);
  sending = $state(false);
  readonly steps = new SvelteMap<string, RunStep[]>(); // by run
  readonly speeds = new SvelteMap<string, number>(); // tokens a second, as last seen

  #watched: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;

  constructor(readonly server: Server) {}

  find(name: string): Run | undefined {
    return this.runs.find((each) => each.name === name);
  }

  async refresh(): Promise<void> {
    this.#take(await this.server.runs());
  }

  /** Its steps, where they were not asked for yet. */
  async know(name: string): Promise<void> {
    if (!this.steps.has(name)) await this.#try(() => this.#follow(name));
  }

  /** Look at these runs again and again, until others are named, or none. */
  watch(names: string[]): void {
    this.#watched = names;
    void this.#look(++this.#turn);
  }

  rest(): void {
    this.#turn++;
    clearTimeout(this.#timer);
  }

  async #look(turn: number): Promise<void> {
    clearTimeout(this.#timer);
    await this.#try(async () => {
      await this.refresh();
      const begun = this.runs.filter(({ name }) => this.#watched.includes(name));
      for (const { name, state } of begun) {
        const all = this.steps.has(name) && state === "finished";
        if (state !== "starting" && state !== "failed" && !(all && this.#isWhole(name)))
          await this.#follow(name);
      }
    });
    if (turn !== this.#turn) return;
    const active = this.now !== null || this.runs.some(({ state }) => state === "running");
    this.#timer = setTimeout(() => void this.#look(turn), active ? OFTEN : SELDOM);
  }

  #isWhole(name: string): boolean {
    return this.steps.get(name)?.at(-1)?.step === this.find(name)?.steps_done;
  }

  async #follow(name: string): Promise<void> {
    const before = this.steps.get(name) ?? [];
    const last = before.at(-1)?.step ?? 0;
    const told = await this.server.runMetrics(name, last);
    this.runs = this.runs.map((each) => (each.name === name ? told.run : each));
    // A run that went back to a checkpoint has fewer steps than are known of it: they are asked for anew.
    const back = told.run.steps_done < last;
    const steps = back ? (await this.server.runMetrics(name, 0)).steps : told.steps;
    if (back || steps.length > 0) this.steps.set(name, joinSteps(back ? [] : before, steps));
    if (told.tokens_a_second !== null) this.speeds.set(name, told.tokens_a_second);
  }

  async start(asked: RunRequest): Promise<boolean> {
    this.sending = true;
    const done = await this.#try(async () => {
      this.steps.delete(asked.name);
      this.#take(await this.server.train(asked));
    });
    this.sending = false;
    return done;
  }

  async stop(name: string): Promise<void> {
    await this.#try(async () => this.#take(await this.server.stopRun(name)));
  }

  async resume(name: string): Promise<void> {
    await this.#try(async () => this.#take(await this.server.resumeRun(name)));
    this.watch(this.#watched);
  }

  #take(listed: Awaited<ReturnType<Server["runs"]>>): void {
    this.runs = listed.runs;
    this.canStart = listed.can_start;
    this.now = listed.now;
    this.known = true;
  }

  async #try(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      this.error = null;
      return true;
    } catch (error) {
      this.error = problemOf(error);
      return false;
    }
  }
}
