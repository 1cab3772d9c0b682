/** The matrices of one model input. Reads within one microtask go to the server as one request. */

import { SvelteMap } from "svelte/reactivity";
import { type ApiClient, ApiError } from "../engine/client";
import type { ModelInput } from "../engine/types";
import type { Matrix } from "../model/matrix";
import { type Area, areaKey, isWeight } from "../model/sites";

const MAX_READS = 64; // per request
const MAX_EQUIVALENT = 24; // areas of another head to prefetch
const MAX_NUMBERS = 2 ** 25; // in the cache: 128 MB
const MAX_WEIGHTS = 256; // slices to keep from one text to the next

export class MatrixCache {
  #loaded = new SvelteMap<string, Matrix>();
  #pending = $state(0);
  // Not reactive: nothing is rendered from these.
  /* eslint-disable svelte/prefer-svelte-reactivity */
  #queued = new Map<string, Area>();
  #requested = new Map<string, Area>();
  #readingAhead: string[] = []; // keys of the areas that are read before they are needed
  #spare = new Map<string, Matrix>(); // those that have arrived
  #ahead = Promise.resolve();
  /* eslint-enable svelte/prefer-svelte-reactivity */
  #size = 0; // numbers in the cache
  #controller = new AbortController();

  constructor(
    readonly api: ApiClient,
    readonly input: ModelInput,
    readonly onerror: (error: unknown) => void,
  ) {}

  /** The matrix if it is loaded; otherwise requests it. Reading is reactive. */
  get(area: Area): Matrix | undefined {
    const key = areaKey(area);
    const whole = areaKey({ name: area.name });
    const matrix = this.peek(area);
    const requested = this.#requested.has(key) || this.#requested.has(whole);
    if (matrix === undefined && !requested && !this.#controller.signal.aborted) {
      this.#requested.set(key, area);
      if (this.#queued.size === 0) queueMicrotask(() => void this.#flush());
      this.#queued.set(key, area);
    }
    return matrix;
  }

  /** The matrix if it is loaded. Reading is reactive. */
  peek(area: Area): Matrix | undefined {
    const whole = this.#loaded.get(areaKey({ name: area.name }));
    return this.#loaded.get(areaKey(area)) ?? whole?.slice(area.rows, area.columns);
  }

  /** Requests areas that views are about to read, in one request. */
  async prefetch(areas: Area[]): Promise<void> {
    if (areas.some((area) => this.#readingAhead.includes(areaKey(area))))
      await this.#whilePending(this.#ahead);
    for (const area of areas) {
      const key = areaKey(area);
      const matrix = this.#spare.get(key);
      if (matrix === undefined || this.#requested.has(key)) continue;
      this.#requested.set(key, area);
      this.#store(key, matrix);
    }
    const fresh = areas.filter((area) => !this.#requested.has(areaKey(area)));
    for (const area of fresh) this.#requested.set(areaKey(area), area);
    await this.#read(fresh);
  }

  /** Requests areas that views may read next, replacing the last ones requested this way. Meanwhile the cache
   * is not busy, and nothing that is rendered changes until they are prefetched. */
  readAhead(areas: Area[]): void {
    const fresh = areas.filter((area) => !this.#requested.has(areaKey(area)));
    const keys = (this.#readingAhead = fresh.map(areaKey));
    this.#spare.clear();
    if (fresh.length === 0) return;
    this.#ahead = this.api.read(this.input, fresh, this.#controller.signal).then(
      (matrices) => {
        if (this.#readingAhead === keys) keys.forEach((key, i) => this.#spare.set(key, matrices[i]!));
      },
      () => undefined, // they are requested again when they are needed
    );
  }

  /** The areas last requested for a head and its block, translated to another head. */
  equivalentAreas([block, head]: [number, number], [toBlock, toHead]: [number, number]): Area[] {
    const [from, to] = [`block.${block}.`, `block.${toBlock}.`];
    return [...this.#requested.values()]
      .filter(
        ({ name }) =>
          name.startsWith(from) && (!/\.head\./.test(name) || name.startsWith(`${from}head.${head}.`)),
      )
      .slice(-MAX_EQUIVALENT)
      .map((area) => ({
        ...area,
        name: area.name.replace(`${from}head.${head}.`, `${to}head.${toHead}.`).replace(from, to),
      }));
  }

  /** Stores a matrix and evicts the oldest ones beyond the size limit. */
  #store(key: string, matrix: Matrix): void {
    this.#loaded.set(key, matrix);
    this.#size += matrix.values.length;
    for (const [oldest, { values }] of this.#loaded) {
      if (this.#size <= MAX_NUMBERS || oldest === key) break;
      this.#loaded.delete(oldest);
      this.#requested.delete(oldest);
      this.#size -= values.length;
    }
  }

  /** Takes over the weights that were loaded for another text of the same model. */
  adoptWeights(other: MatrixCache): void {
    const weights = [...other.#loaded].filter(([key]) => isWeight(key.slice(0, key.indexOf("["))));
    for (const [key, matrix] of weights.slice(-MAX_WEIGHTS)) this.#loaded.set(key, matrix);
  }

  /** Whether a request is under way. */
  get busy(): boolean {
    return this.#pending > 0;
  }

  close(): void {
    this.#controller.abort();
  }

  async #flush(): Promise<void> {
    const areas = [...this.#queued.values()];
    this.#queued.clear();
    for (let start = 0; start < areas.length; start += MAX_READS) {
      await this.#read(areas.slice(start, start + MAX_READS));
    }
  }

  async #whilePending(read: Promise<void>): Promise<void> {
    this.#pending++;
    await read;
    this.#pending--;
  }

  async #read(areas: Area[]): Promise<void> {
    if (areas.length === 0) return;
    this.#pending++;
    try {
      const matrices = await this.api.read(this.input, areas, this.#controller.signal);
      areas.forEach((area, i) => this.#store(areaKey(area), matrices[i]!));
    } catch (error) {
      if (this.#controller.signal.aborted) return;
      for (const area of areas) this.#requested.delete(areaKey(area)); // to allow another request
      if (error instanceof ApiError || error instanceof Error) this.onerror(error);
    } finally {
      this.#pending--;
    }
  }
}
