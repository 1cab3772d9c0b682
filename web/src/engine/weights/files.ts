/** The files of a live model: on the page's host, or inside the page itself. */

import { ApiError } from "../client";
import { sha256 } from "./sha256";

export type ReadModelFile = (
  name: string,
  onbytes?: (done: number) => void, // how many bytes have arrived
  length?: number, // how many are expected
) => Promise<Uint8Array<ArrayBuffer>>;

/** Where files are: an absolute address that names are relative to, or their contents. */
export type FileSource = { address: string } | { files: Record<string, Uint8Array<ArrayBuffer>> };

export function openFiles(source: FileSource): ReadModelFile {
  return "address" in source ? fetchFiles(source.address) : embeddedFiles(source.files);
}

/** Reads the files in one of the folders. */
export function inFolder(readFile: ReadModelFile, folder: string): ReadModelFile {
  return (name, ...more) => readFile(`${folder}/${name}`, ...more);
}

/** The contents of a JSON file. Throws an ApiError that names the file if it is missing or damaged. */
export async function readJson<T>(readFile: ReadModelFile, name: string, hash?: string): Promise<T> {
  const bytes = await readFile(name).catch((error: unknown) => {
    throw notLoaded(name, error);
  });
  if (hash !== undefined && (await sha256(bytes)) !== hash) throw changed(name);
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as T;
  } catch {
    throw damaged(name, "it is not valid JSON");
  }
}

/** The code of the error for a file whose host cannot be reached. */
export const UNREACHABLE = "host_unreachable";

export function notLoaded(file: string, error: unknown): ApiError {
  const reason = error instanceof Error ? error.message : String(error);
  const message = `${file} could not be loaded (${reason}): check the connection, and reload the page`;
  const code = error instanceof TypeError ? UNREACHABLE : "weights_not_loaded"; // as fetch fails without a network
  return new ApiError(503, message, code, { file, reason });
}

/** The error for a file that is not the one that was published. */
export function changed(file: string): ApiError {
  return damaged(file, "it is not the file that was published (its SHA-256 differs)");
}

export function damaged(file: string, reason: string): ApiError {
  const message = `${file} is damaged: ${reason}; reload the page, and if this persists, ask its author to publish it again`;
  return new ApiError(500, message, "weights_damaged", { file, reason });
}

function fetchFiles(address: string): ReadModelFile {
  return async (name, onbytes, length) => {
    const response = await fetchTwice(new URL(name, address));
    if (!response.ok) throw new Error(`status ${response.status}`);
    if (!response.body || !onbytes) return new Uint8Array(await response.arrayBuffer());
    return await collect(response.body, onbytes, length);
  };
}

const RETRY_DELAY = 500; // milliseconds

/** A connection may break once in the many requests that a large model needs. */
async function fetchTwice(address: URL): Promise<Response> {
  try {
    return await fetch(address);
  } catch {
    await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY));
    return await fetch(address);
  }
}

/** Reads a stream into one array, which is allocated at once if its length is known, so that no large chunks are left as garbage. */
async function collect(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  onbytes: (done: number) => void,
  length = 0,
): Promise<Uint8Array<ArrayBuffer>> {
  let bytes = new Uint8Array(length);
  const reader = stream.getReader();
  let end = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    const chunk = next.value;
    if (end + chunk.length > bytes.length) bytes = enlarged(bytes, Math.max(end + chunk.length, 2 * end));
    bytes.set(chunk, end);
    end += chunk.length;
    onbytes(end);
  }
  return bytes.subarray(0, end);
}

function enlarged(bytes: Uint8Array, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}

function embeddedFiles(files: Record<string, Uint8Array<ArrayBuffer>>): ReadModelFile {
  return (name, onbytes) => {
    const bytes = Object.hasOwn(files, name) ? files[name] : undefined;
    if (!bytes) return Promise.reject(new Error("it is not in this file"));
    onbytes?.(bytes.length);
    return Promise.resolve(bytes);
  };
}
