/** The part of the WebGPU API that is used here: TypeScript's own libraries do not declare it. */

export interface Gpu {
  requestAdapter: (options?: { powerPreference: "high-performance" }) => Promise<GpuAdapter | null>;
}

export interface GpuAdapter {
  readonly info?: GpuAdapterInfo;
  readonly limits: GpuLimits;
  requestDevice: (settings: { requiredLimits: Partial<GpuLimits> }) => Promise<GpuDevice>;
}

export interface GpuAdapterInfo {
  readonly vendor: string;
  readonly architecture: string;
  readonly description: string;
  readonly isFallbackAdapter?: boolean;
}

export interface GpuLimits {
  readonly maxBufferSize: number; // bytes
  readonly maxStorageBufferBindingSize: number;
}

export interface GpuDevice {
  readonly limits: GpuLimits;
  readonly lost: Promise<unknown>;
  readonly queue: {
    submit: (commands: GpuCommands[]) => void;
    writeBuffer: (buffer: GpuBuffer, offset: number, data: Float32Array) => void;
  };
  createBuffer: (settings: { size: number; usage: number; mappedAtCreation?: boolean }) => GpuBuffer;
  createShaderModule: (settings: { code: string }) => GpuShaderModule;
  createComputePipelineAsync: (settings: {
    layout: "auto";
    compute: { module: GpuShaderModule; constants: Constants };
  }) => Promise<GpuPipeline>;
  createBindGroup: (settings: {
    layout: unknown;
    entries: { binding: number; resource: { buffer: GpuBuffer } }[];
  }) => GpuBindGroup;
  createCommandEncoder: () => GpuCommandEncoder;
  pushErrorScope: (filter: "validation" | "out-of-memory" | "internal") => void;
  popErrorScope: () => Promise<{ message: string } | null>;
  destroy: () => void;
}

/** Values for the `override` declarations of a shader. */
export type Constants = Record<string, number>;

export interface GpuBuffer {
  readonly size: number;
  getMappedRange: () => ArrayBuffer;
  mapAsync: (mode: number) => Promise<void>;
  unmap: () => void;
  destroy: () => void;
}

export interface GpuPipeline {
  getBindGroupLayout: (index: number) => unknown;
}

export interface GpuCommandEncoder {
  beginComputePass: () => GpuComputePass;
  copyBufferToBuffer: (from: GpuBuffer, start: number, to: GpuBuffer, at: number, size: number) => void;
  finish: () => GpuCommands;
}

export interface GpuComputePass {
  setPipeline: (pipeline: GpuPipeline) => void;
  setBindGroup: (index: number, group: GpuBindGroup) => void;
  dispatchWorkgroups: (x: number, y: number) => void;
  end: () => void;
}

export type GpuShaderModule = object;
export type GpuBindGroup = object;
export type GpuCommands = object;

/** Flags of WebGPU's GPUMapMode and GPUBufferUsage. */
export const MAP_READ_MODE = 1;
export const MAP_READ = 1;
export const COPY_SRC = 4;
export const COPY_DST = 8;
export const STORAGE = 128;
