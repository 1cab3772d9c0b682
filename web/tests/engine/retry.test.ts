import { expect, test } from "vitest";
import { ApiError } from "../../src/engine/client";
import { retryWhileBusy } from "../../src/engine/retry";

const BUSY = new ApiError(429, "another lab is running; retry later", "busy");

/** A request that is answered with each of these in turn. */
function answer(...answers: (Error | string)[]): () => Promise<string> {
  return () => {
    const next = answers.shift()!;
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
  };
}

test("waits while the server is busy", async () => {
  let waits = 0;
  const { signal } = new AbortController();
  const result = retryWhileBusy(answer(BUSY, BUSY, "done"), signal, () => waits++, 0);
  await expect(result).resolves.toBe("done");
  expect(waits).toBe(2);
});

test("does not repeat a request that failed or was aborted", async () => {
  const controller = new AbortController();
  const failed = new ApiError(400, "no such lab", "lab_missing");
  await expect(retryWhileBusy(answer(failed, "done"), controller.signal, () => {}, 0)).rejects.toBe(failed);
  const aborted = retryWhileBusy(answer(BUSY, "done"), controller.signal, () => controller.abort(), 0);
  await expect(aborted).rejects.toThrow(/abort/);
});
