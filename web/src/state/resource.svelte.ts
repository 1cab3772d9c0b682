import { untrack } from "svelte";
import { type Problem, problemOf } from "../engine/problem";

/** The answer to what is asked at the moment; the one before it stays until the new one has come. */
export interface Answer<T> {
  readonly current: T | null;
  readonly error: Problem | null;
  readonly busy: boolean;
}

/** `ask` begins to ask, or is nothing; where what it reads changes, it is asked anew. */
export function answer<T>(ask: () => ((signal: AbortSignal) => Promise<T>) | null): Answer<T> {
  let current = $state.raw<T | null>(null);
  let error = $state.raw<Problem | null>(null);
  let busy = $state(false);
  $effect(() => {
    const begin = ask();
    if (begin === null) {
      [current, error, busy] = [null, null, false];
      return;
    }
    const leaving = new AbortController();
    [error, busy] = [null, true];
    // Only what `ask` reads counts: on its way, a model may be loaded, which changes what is known of models.
    untrack(() => begin(leaving.signal)).then(
      (found) => {
        if (!leaving.signal.aborted) [current, busy] = [found, false];
      },
      (reason: unknown) => {
        if (leaving.signal.aborted) return;
        [current, error, busy] = [null, problemOf(reason), false];
      },
    );
    return () => leaving.abort();
  });
  return {
    get current() {
      return current;
    },
    get error() {
      return error;
    },
    get busy() {
      return busy;
    },
  };
}
