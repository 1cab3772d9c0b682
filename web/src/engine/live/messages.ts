/** What the page and the engine's worker send each other. */

import type { GpuOptions } from "../webgpu/device";
import type { FileSource } from "../weights/files";

/** The first message to the worker. */
export interface StartMessage {
  start: FileSource;
  gpu?: GpuOptions; // only tests set it
}

export interface RequestMessage {
  id: number;
  path: string;
  body: string | null; // JSON
}

export interface AbortMessage {
  id: number;
  abort: true;
}

export interface ResponseMessage {
  id: number;
  status: number;
  headers: [string, string][];
  body: ArrayBuffer;
}

/** How far the loading of a model is. */
export interface ProgressMessage {
  model: string;
  done: number; // bytes
  total: number;
}

export type ToWorker = StartMessage | RequestMessage | AbortMessage;
export type FromWorker = ResponseMessage | ProgressMessage;
