import { afterEach, expect, test, vi } from "vitest";
import type { GpuAdapter } from "../../../src/engine/webgpu/api";
import { isSoftware, openDevice } from "../../../src/engine/webgpu/device";

const limits = { maxBufferSize: 2 ** 31, maxStorageBufferBindingSize: 2 ** 30 };
const info = { vendor: "nvidia", architecture: "ada", description: "" };

function makeAdapter(changes: Partial<GpuAdapter> = {}): GpuAdapter {
  const requestDevice = vi.fn(() => Promise.resolve("device" as never));
  return { info, limits, requestDevice, ...changes };
}

function offer(adapter: GpuAdapter | null): void {
  vi.stubGlobal("navigator", { gpu: { requestAdapter: () => Promise.resolve(adapter) } });
}

afterEach(() => void vi.unstubAllGlobals());

test.each([
  ["a GPU", info, false],
  ["SwiftShader", { ...info, vendor: "google", architecture: "swiftshader" }, true],
  ["Mesa", { ...info, vendor: "mesa", description: "llvmpipe (LLVM 19)" }, true],
  ["a fallback adapter", { ...info, isFallbackAdapter: true }, true],
])("recognizes an adapter that computes on the CPU: %s", (_, info, expected) => {
  expect(isSoftware(makeAdapter({ info }))).toBe(expected);
});

test("asks for the largest buffers of the adapter", async () => {
  const adapter = makeAdapter();
  offer(adapter);
  expect(await openDevice({})).toBe("device");
  expect(adapter.requestDevice).toHaveBeenCalledWith({ requiredLimits: limits });
});

test("opens an adapter that computes on the CPU only if asked to", async () => {
  offer(makeAdapter({ info: { ...info, isFallbackAdapter: true } }));
  expect(await openDevice({})).toBeNull();
  expect(await openDevice({ software: true })).toBe("device");
});

test("has no device without WebGPU, without an adapter, or if the adapter refuses", async () => {
  vi.stubGlobal("navigator", {});
  expect(await openDevice({})).toBeNull();
  offer(null);
  expect(await openDevice({})).toBeNull();
  offer(makeAdapter({ requestDevice: () => Promise.reject(new Error("lost")) }));
  expect(await openDevice({})).toBeNull();
});
