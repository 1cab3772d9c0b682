/** Starts the engine in a worker. Its script is part of the bundle, so that it also runs in a file opened from disk. */

import type { FileSource } from "../weights/files";
import { LiveConnection } from "./liveFetch";
import type { ProgressMessage } from "./messages";
import EngineWorker from "./worker?worker&inline";

export function startEngine(
  source: FileSource,
  onprogress: (progress: ProgressMessage) => void,
): LiveConnection {
  return new LiveConnection(new EngineWorker(), source, onprogress);
}
