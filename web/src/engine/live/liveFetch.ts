/** A connection to the engine in a worker, which answers the page's requests like a server. */

import type { Fetch } from "../client";
import type { FileSource } from "../weights/files";
import type { FromWorker, ProgressMessage, ToWorker } from "./messages";

/** The part of a Worker that the connection uses. */
export interface WorkerPort {
  postMessage: (message: ToWorker) => void;
  onmessage: ((event: MessageEvent<FromWorker>) => void) | null;
  onerror: ((event: ErrorEvent) => void) | null;
  terminate: () => void;
}

export class LiveConnection {
  readonly #pending = new Map<number, (response: Response) => void>();
  #count = 0;
  #failure: string | null = null; // why the worker stopped

  constructor(
    readonly worker: WorkerPort,
    source: FileSource,
    readonly onprogress: (progress: ProgressMessage) => void = () => undefined,
  ) {
    worker.onmessage = ({ data }) => this.#receive(data);
    worker.onerror = (event) => this.#fail(event);
    worker.postMessage({ start: source });
  }

  readonly fetch: Fetch = (path, { body = null, signal }) => {
    if (this.#failure !== null) return Promise.resolve(failureResponse(this.#failure));
    const id = this.#count++;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      signal?.addEventListener("abort", () => {
        if (!this.#pending.delete(id)) return;
        this.worker.postMessage({ id, abort: true });
        reject(signal.reason as Error);
      });
      this.#pending.set(id, resolve);
      this.worker.postMessage({ id, path, body: typeof body === "string" ? body : null });
    });
  };

  close(): void {
    this.worker.terminate();
    this.#pending.clear();
  }

  #receive(message: FromWorker): void {
    if ("model" in message) {
      this.onprogress(message);
      return;
    }
    const { id, status, headers, body } = message;
    const resolve = this.#pending.get(id);
    this.#pending.delete(id);
    resolve?.(new Response(body, { status, headers }));
  }

  /** An error outside any request: the worker could not be started, or ran out of memory. */
  #fail(event: ErrorEvent): void {
    event.preventDefault();
    this.#failure = event.message || "the worker could not be started";
    for (const resolve of this.#pending.values()) resolve(failureResponse(this.#failure));
    this.#pending.clear();
  }
}

function failureResponse(reason: string): Response {
  const message = `the engine stopped (${reason}): reload the page`;
  return Response.json({ error: { message, code: "engine_stopped", values: { reason } } }, { status: 500 });
}
