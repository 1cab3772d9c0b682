import { expect, test, vi } from "vitest";
import { Trace } from "../../../src/engine/inspect/trace";
import { TraceCache } from "../../../src/engine/live/traceCache";
import { KVCache } from "../../../src/engine/model/kvCache";
import { range } from "../../../src/engine/model/tensor";
import type { GpuRun } from "../../../src/engine/webgpu/forward";
import { makeNetwork } from "../webgpu/network";

const network = makeNetwork();
const tokenizer = {
  startIds: [],
  encode: (text: string) => text.split(" ").map(Number),
  decode: () => "",
  pieces: () => [],
  hasText: () => true,
};

/** A cache with a model whose GPU computes the right numbers. */
function open(run?: (ids: readonly number[]) => Promise<GpuRun | null>) {
  const onGpu = vi.fn(run ?? ((ids) => Promise.resolve(compute(ids))));
  const cache = new TraceCache(() => ({ network, tokenizer, gpu: { run: onGpu } }));
  return { cache, onGpu };
}

function compute(ids: readonly number[]): GpuRun {
  const cache = new KVCache(network.config, ids.length);
  network.hiddenStates(ids, cache);
  return { stream: new Trace(network, ids).stream, cache };
}

const about = (text: number[]) => ({ model: "model", text });

test("a trace has the stream computed by the GPU, which runs a text once for several requests", async () => {
  const { cache, onGpu } = open();
  const text = range(12);
  await Promise.all([cache.prepare(about(text)), cache.prepare(about(text))]);
  await cache.prepare(about(text));
  expect(onGpu).toHaveBeenCalledOnce();
  expect(cache.trace(about(text)).stream).toEqual(new Trace(network, text).stream);
});

test("a few more tokens are run on the CPU, with the keys and values from the GPU", async () => {
  const { cache, onGpu } = open();
  for (const length of [5, 12, 14]) await cache.prepare(about(range(length)));
  expect(onGpu.mock.calls).toEqual([[range(12)]]);
  const { last } = cache.trace(about(range(14))).stream;
  const expected = new Trace(network, range(14)).stream.last;
  last.values.forEach((value, i) => expect(value).toBeCloseTo(expected.values[i]!, 4));
});

test("the texts that edits patch from are run as well", async () => {
  const { cache, onGpu } = open();
  const edits = [{ site: "block.0.input", text: "1 2 3 4 5 6 7 8 9" }];
  await cache.prepare({ ...about(range(12)), edits });
  expect(onGpu.mock.calls).toEqual([[range(12)], [range(10, 1)]]);
});

test("without a result from the GPU, the CPU computes the trace", async () => {
  const { cache } = open(() => Promise.resolve(null));
  await cache.prepare(about(range(12)));
  expect(cache.trace(about(range(12))).stream).toEqual(new Trace(network, range(12)).stream);
});

test("a text that is too long is refused before it runs", async () => {
  const { cache, onGpu } = open();
  await expect(cache.prepare(about(range(33).map((i) => i % 17)))).rejects.toThrow(
    "33 tokens; the limit is 32",
  );
  expect(onGpu).not.toHaveBeenCalled();
});
