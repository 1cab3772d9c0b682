import { untrack } from "svelte";
import { type Problem, toProblem } from "../engine/problem";

/** The result of an asynchronous load. The previous result stays until the next one arrives. */
export interface Resource<T> {
  readonly current: T | null;
  readonly error: Problem | null;
  readonly loading: boolean;
  retry(): void;
}

/** Loads again whenever the state that `getLoader` reads changes. Without a loader, the resource is empty. */
export function resource<T>(getLoader: () => ((signal: AbortSignal) => Promise<T>) | null): Resource<T> {
  let current = $state.raw<T | null>(null);
  let error = $state.raw<Problem | null>(null);
  let loading = $state(false);
  let attempts = $state(0);
  $effect(() => {
    const load = getLoader();
    void attempts; // a retry loads again
    if (load === null) {
      [current, error, loading] = [null, null, false];
      return;
    }
    const controller = new AbortController();
    [error, loading] = [null, true];
    // Loading may open a model, which changes the model list: only what `getLoader` reads is a dependency.
    untrack(() => load(controller.signal)).then(
      (result) => {
        if (!controller.signal.aborted) [current, loading] = [result, false];
      },
      (reason: unknown) => {
        if (controller.signal.aborted) return;
        [current, error, loading] = [null, toProblem(reason), false];
      },
    );
    return () => controller.abort();
  });
  return {
    get current() {
      return current;
    },
    get error() {
      return error;
    },
    get loading() {
      return loading;
    },
    retry() {
      attempts++;
    },
  };
}
