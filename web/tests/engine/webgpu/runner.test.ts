import { expect, test, vi } from "vitest";
import { Transformer } from "../../../src/engine/model/transformer";
import type { GpuDevice } from "../../../src/engine/webgpu/api";
import { GpuRunner } from "../../../src/engine/webgpu/runner";
import { makeNetwork } from "./network";

const IDS = [1, 2, 3];

/** A device without memory. */
function makeDevice() {
  return {
    limits: { maxBufferSize: 0, maxStorageBufferBindingSize: 0 },
    lost: new Promise(() => undefined),
    createShaderModule: () => ({}),
    createComputePipelineAsync: () => Promise.resolve({}),
    pushErrorScope: vi.fn(),
    popErrorScope: vi.fn(() => Promise.resolve(null)),
    destroy: vi.fn(),
  };
}

test("is for large models with heads that the shaders support", () => {
  const network = makeNetwork();
  expect(GpuRunner.create(network)).toBeNull();
  expect(GpuRunner.create(network, { minParameters: 1728 })).not.toBeNull(); // 3 (8 ⋅ (8 + 4 + 4 + 8) + 3 ⋅ 8 ⋅ 16)
  expect(GpuRunner.create(network, { minParameters: 1729 })).toBeNull();
  const config = { ...network.config, d_head: 512 };
  const large = Object.assign(Object.create(Transformer.prototype), network, { config }) as Transformer;
  expect(GpuRunner.create(large, { minParameters: 0 })).toBeNull();
});

test("asks for a device on the first run, and only once if there is none", async () => {
  const open = vi.fn(() => Promise.resolve(null));
  const runner = GpuRunner.create(makeNetwork(), { minParameters: 0 }, open)!;
  expect(open).not.toHaveBeenCalled();
  expect([await runner.run(IDS), await runner.run(IDS)]).toEqual([null, null]);
  expect(open).toHaveBeenCalledOnce();
});

test("gives back a device that has too little memory", async () => {
  const device = makeDevice();
  const open = vi.fn(() => Promise.resolve(device as unknown as GpuDevice));
  const runner = GpuRunner.create(makeNetwork(), { minParameters: 0 }, open)!;
  expect([await runner.run(IDS), await runner.run(IDS)]).toEqual([null, null]);
  expect(open).toHaveBeenCalledOnce();
  expect(device.destroy).toHaveBeenCalled();
  expect(device.popErrorScope).toHaveBeenCalledTimes(device.pushErrorScope.mock.calls.length);
});
