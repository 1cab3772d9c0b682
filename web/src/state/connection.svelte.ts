/** Whether the server answers: what went wrong last, and asking again by itself where that may help. */

import { type Problem, problemOf } from "../engine/problem";
import { ServerError } from "../engine/client";

const RETRY = 2000; // milliseconds until a lost server is asked again

export class Connection {
  problem = $state.raw<Problem | null>(null);
  lost = $state(false);
  waiting = $state(false); // for a notebook's kernel
  reopened = $state(0); // how often a model had been closed, and is read again: it may have been trained since
  #working = $state(0);
  #retry: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly again: () => void) {}

  /** Whether something is asked for. */
  get busy(): boolean {
    return this.#working > 0;
  }

  async guard(work: () => Promise<void>): Promise<void> {
    this.#working++;
    try {
      await work();
      this.problem = null;
      this.lost = false;
    } catch (error) {
      this.fail(error);
    } finally {
      this.#working--;
    }
  }

  fail(error: unknown): void {
    if (error instanceof DOMException && error.name === "AbortError") return;
    const problem = problemOf(error);
    const { status } = problem;
    this.problem = problem;
    // A model that was not used for long may have been closed to make room: starting again opens it.
    const closed = error instanceof ServerError && error.code === "model_not_open";
    if (closed) this.reopened++;
    this.lost = status === 0;
    if (status !== 0 && status !== 401 && status !== 429 && !closed) return; // it may be known again by then
    const seconds = error instanceof ServerError ? error.retryAfter : null;
    clearTimeout(this.#retry);
    this.#retry = setTimeout(this.again, seconds ? 1000 * seconds : RETRY);
  }
}
