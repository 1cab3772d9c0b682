/** A connection to a notebook's kernel: requests and responses travel as the widget's custom messages. */

import type { Fetch } from "./client";

/** The part of anywidget's model that the page uses. */
export interface WidgetModel {
  get: (name: string) => unknown;
  send: (content: unknown) => void;
  on: (event: "msg:custom", handler: MessageHandler) => void;
  off: (event: "msg:custom", handler: MessageHandler) => void;
}
type MessageHandler = (content: ResponseHead, buffers: DataView[]) => void;

interface ResponseHead {
  id: string;
  status: number;
  headers: Record<string, string>;
}

const WAITING_DELAY = 3000; // milliseconds without a response before the page shows that it is waiting

export class KernelConnection {
  // Several views of one widget receive the same messages: the prefix tells their requests apart.
  readonly #prefix = Math.random().toString(36).slice(2);
  #count = 0;
  #pending = new Map<string, (response: Response) => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly model: WidgetModel,
    readonly onwaiting: (waiting: boolean) => void,
  ) {
    model.on("msg:custom", this.#receive);
  }

  readonly fetch: Fetch = (path, { method = "GET", body = null, signal }) => {
    const id = `${this.#prefix} ${this.#count++}`;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      signal?.addEventListener("abort", () => {
        if (!this.#pending.delete(id)) return;
        this.model.send({ id, leave: true });
        reject(signal.reason as Error);
      });
      this.#pending.set(id, resolve);
      this.model.send({ id, method, path, body });
      this.#restartTimer();
    });
  };

  close(): void {
    clearTimeout(this.#timer);
    this.model.off("msg:custom", this.#receive);
  }

  readonly #receive: MessageHandler = ({ id, status, headers }, [body]) => {
    const resolve = this.#pending.get(id);
    if (!resolve) return;
    this.#pending.delete(id);
    this.#restartTimer();
    resolve(new Response((body ?? null) as DataView<ArrayBuffer> | null, { status, headers }));
  };

  #restartTimer(): void {
    clearTimeout(this.#timer);
    this.onwaiting(false);
    if (this.#pending.size > 0) this.#timer = setTimeout(() => this.onwaiting(true), WAITING_DELAY);
  }
}
