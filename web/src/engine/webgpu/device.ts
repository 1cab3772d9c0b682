/** Asks the browser for a GPU. */

import type { Gpu, GpuAdapter, GpuDevice } from "./api";

/** How tests change when the GPU is used. */
export interface GpuOptions {
  software?: boolean; // also take an adapter that computes on the CPU
  minParameters?: number;
}

/** A device with the adapter's largest buffers; null if there is no GPU, or only one that software emulates. */
export async function openDevice({ software = false }: GpuOptions): Promise<GpuDevice | null> {
  const { gpu } = navigator as { gpu?: Gpu };
  try {
    const adapter = await gpu?.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter || (isSoftware(adapter) && !software)) return null;
    const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
    return await adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } });
  } catch {
    return null;
  }
}

/** Whether the adapter computes on the CPU, where WebAssembly is faster. */
export function isSoftware({ info }: GpuAdapter): boolean {
  if (!info || info.isFallbackAdapter) return true; // without a description, assume software
  const description = `${info.vendor} ${info.architecture} ${info.description}`;
  return /swiftshader|llvmpipe|lavapipe|software|basic render/i.test(description);
}
