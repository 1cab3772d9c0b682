/** What is known of one text through one model. What is asked for in one moment goes to the server as one request. */

import { SvelteMap } from "svelte/reactivity";
import { type Area, areaKey, isWeight } from "../model/sites";
import type { Matrix } from "../model/matrix";
import { type Question, type Server, ServerError } from "../engine/client";

const MOST_READS = 64; // of one request
const MOST_ALIKE = 24; // areas
const MOST_NUMBERS = 2 ** 25; // held at a time: 128 MB
const MOST_WEIGHTS = 256; // slices that are taken along from text to text

export class Slices {
  #known = new SvelteMap<string, Matrix>();
  #pending = $state(0);
  // Nobody is told when these change: they are no state.
  /* eslint-disable svelte/prefer-svelte-reactivity */
  #wanted = new Map<string, Area>();
  #asked = new Map<string, Area>();
  /* eslint-enable svelte/prefer-svelte-reactivity */
  #held = 0; // numbers
  #leaving = new AbortController();

  constructor(
    readonly server: Server,
    readonly question: Question,
    readonly failed: (error: unknown) => void,
  ) {}

  /** The matrix, or nothing yet: then it is on its way, and who asks is told when it is there. */
  get(area: Area): Matrix | undefined {
    const key = areaKey(area);
    const whole = areaKey({ name: area.name });
    const found = this.#known.get(key) ?? this.#known.get(whole)?.cut(area.rows, area.columns);
    const asked = this.#asked.has(key) || this.#asked.has(whole);
    if (found === undefined && !asked && !this.#leaving.signal.aborted) {
      this.#asked.set(key, area);
      if (this.#wanted.size === 0) queueMicrotask(() => void this.#send());
      this.#wanted.set(key, area);
    }
    return found;
  }

  /** Ask at once, before anyone else does, for all that views are about to show. */
  async prepare(areas: Area[]): Promise<void> {
    const fresh = areas.filter((area) => !this.#asked.has(areaKey(area)));
    for (const area of fresh) this.#asked.set(areaKey(area), area);
    await this.#read(fresh);
  }

  /** What was asked for last of a head, or of its block, as the same of another one. */
  alike([block, head]: [number, number], [toBlock, toHead]: [number, number]): Area[] {
    const [from, to] = [`block.${block}.`, `block.${toBlock}.`];
    return [...this.#asked.values()]
      .filter(
        ({ name }) =>
          name.startsWith(from) && (!/\.head\./.test(name) || name.startsWith(`${from}head.${head}.`)),
      )
      .slice(-MOST_ALIKE)
      .map((area) => ({
        ...area,
        name: area.name.replace(`${from}head.${head}.`, `${to}head.${toHead}.`).replace(from, to),
      }));
  }

  /** Not more than a browser likes to hold: what came first goes first, and is asked for again if need be. */
  #keep(key: string, matrix: Matrix): void {
    this.#known.set(key, matrix);
    this.#held += matrix.values.length;
    for (const [oldest, { values }] of this.#known) {
      if (this.#held <= MOST_NUMBERS || oldest === key) break;
      this.#known.delete(oldest);
      this.#asked.delete(oldest);
      this.#held -= values.length;
    }
  }

  /** The same model's weights, as far as they were seen with another text. */
  adopt(other: Slices): void {
    const weights = [...other.#known].filter(([key]) => isWeight(key.slice(0, key.indexOf("["))));
    for (const [key, matrix] of weights.slice(-MOST_WEIGHTS)) this.#known.set(key, matrix);
  }

  /** Whether something is on its way. */
  get busy(): boolean {
    return this.#pending > 0;
  }

  close(): void {
    this.#leaving.abort();
  }

  async #send(): Promise<void> {
    const areas = [...this.#wanted.values()];
    this.#wanted.clear();
    for (let start = 0; start < areas.length; start += MOST_READS) {
      await this.#read(areas.slice(start, start + MOST_READS));
    }
  }

  async #read(areas: Area[]): Promise<void> {
    if (areas.length === 0) return;
    this.#pending++;
    try {
      const matrices = await this.server.read(this.question, areas, this.#leaving.signal);
      areas.forEach((area, i) => this.#keep(areaKey(area), matrices[i]!));
    } catch (error) {
      if (this.#leaving.signal.aborted) return;
      for (const area of areas) this.#asked.delete(areaKey(area)); // so that it can be asked for again
      if (error instanceof ServerError || error instanceof Error) this.failed(error);
    } finally {
      this.#pending--;
    }
  }
}
