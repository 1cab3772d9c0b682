/** The state of the connection: the last problem, and a retry if one may help. */

import { ApiError } from "../engine/client";
import { type Problem, toProblem } from "../engine/problem";

const RETRY_DELAY = 2000; // milliseconds; a Retry-After header takes precedence

export class Connection {
  problem = $state.raw<Problem | null>(null);
  lost = $state(false);
  waiting = $state(false); // for a notebook's kernel
  reopened = $state(0); // how many times a closed model was reopened: it may have been trained in between
  #pending = $state(0);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly retry: () => void) {}

  /** Whether a request is under way. */
  get busy(): boolean {
    return this.#pending > 0;
  }

  /** Runs a task and reports its error, if any. */
  async guard(task: () => Promise<void>): Promise<void> {
    this.#pending++;
    try {
      await task();
      this.problem = null;
      this.lost = false;
    } catch (error) {
      this.report(error);
    } finally {
      this.#pending--;
    }
  }

  report(error: unknown): void {
    if (error instanceof DOMException && error.name === "AbortError") return;
    const problem = toProblem(error);
    const { status } = problem;
    this.problem = problem;
    // The server closes models that have not been used for a while. A retry opens them again.
    const closed = error instanceof ApiError && error.code === "model_not_open";
    if (closed) this.reopened++;
    this.lost = status === 0;
    if (status !== 0 && status !== 401 && status !== 429 && !closed) return;
    const seconds = error instanceof ApiError ? error.retryAfter : null;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.retry, seconds ? 1000 * seconds : RETRY_DELAY);
  }
}
