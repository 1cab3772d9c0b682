import { ApiError } from "./client";

const BUSY_DELAY = 1500; // milliseconds

/** Repeats a request while the server is busy, until it is answered or aborted. */
export async function retryWhileBusy<T>(
  request: () => Promise<T>,
  signal: AbortSignal,
  onwait: () => void,
  delay = BUSY_DELAY,
): Promise<T> {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (signal.aborted || !(error instanceof ApiError) || error.status !== 429) throw error;
      onwait();
      await new Promise((resolve) => setTimeout(resolve, delay));
      signal.throwIfAborted();
    }
  }
}
