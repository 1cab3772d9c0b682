/** The gradients of one training step. Each area is requested once, when it is first read. */

import { SvelteMap } from "svelte/reactivity";
import type { ApiClient, LessonInput } from "../engine/client";
import type { Schemas } from "../engine/types";
import { positionLabel, tokenLabel } from "../messages/format.svelte";
import type { Matrix } from "../model/matrix";
import { type Area, areaKey } from "../model/sites";

export type Lesson = Schemas["LessonResponse"];

const MAX_MATRICES = 24;

export class GradientCache {
  #loaded = new SvelteMap<string, Matrix>();
  #pending = $state(0);
  #requested: string[] = [];
  #controller = new AbortController();

  constructor(
    readonly api: ApiClient,
    readonly input: LessonInput,
    readonly onerror: (error: unknown) => void,
  ) {}

  /** The gradient if it is loaded; otherwise requests it. Reading is reactive. */
  get(area: Area): Matrix | undefined {
    const key = areaKey(area);
    const matrix = this.#loaded.get(key);
    if (matrix === undefined && !this.#requested.includes(key) && !this.#controller.signal.aborted) {
      this.#requested.push(key);
      queueMicrotask(() => void this.#read(area, key));
    }
    return matrix;
  }

  /** Whether a request is under way. */
  get busy(): boolean {
    return this.#pending > 0;
  }

  close(): void {
    this.#controller.abort();
  }

  async #read(area: Area, key: string): Promise<void> {
    this.#pending++;
    try {
      this.#loaded.set(key, await this.api.gradient(this.input, area, this.#controller.signal));
      while (this.#requested.length > MAX_MATRICES) this.#loaded.delete(this.#requested.shift()!);
    } catch (error) {
      if (this.#controller.signal.aborted) return;
      this.#requested = this.#requested.filter((each) => each !== key);
      this.onerror(error);
    } finally {
      this.#pending--;
    }
  }
}

/** The target of a position for display; one that is the next token of the text gets that token's number. */
export function targetLabel(
  { tokens, targets }: Pick<Lesson, "tokens" | "targets">,
  position: number,
): string {
  const text = targets[position]?.text ?? "";
  return text === tokens[position + 1] ? positionLabel(tokens, position + 1) : tokenLabel(text);
}

/** The position whose prediction is shown: the selected one, or the last one before it that has a target. */
export function targetPosition({ targets }: Pick<Lesson, "targets">, row: number): number {
  for (let i = Math.min(row, targets.length - 1); i >= 0; i--) if (targets[i] !== null) return i;
  return targets.findIndex((target) => target !== null);
}
