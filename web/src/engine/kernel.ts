/** Questions to a notebook's kernel: they travel as messages of a widget, and so do the answers. */

import type { Ask } from "./client";

/** What anywidget gives a widget to speak with Python. */
export interface Channel {
  get: (name: string) => unknown;
  send: (content: unknown) => void;
  on: (event: "msg:custom", hear: Hear) => void;
  off: (event: "msg:custom", hear: Hear) => void;
}
type Hear = (content: Answer, buffers: DataView[]) => void;

interface Answer {
  id: string;
  status: number;
  headers: Record<string, string>;
}

const PATIENCE = 3000; // milliseconds of silence until one is told

export class Kernel {
  // Another view of the same widget hears the same answers.
  readonly #name = Math.random().toString(36).slice(2);
  #count = 0;
  #open = new Map<string, (answer: Response) => void>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly channel: Channel,
    readonly waits: (waiting: boolean) => void,
  ) {
    channel.on("msg:custom", this.#hear);
  }

  readonly ask: Ask = (path, { method = "GET", body = null, signal }) => {
    const id = `${this.#name} ${this.#count++}`;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      signal?.addEventListener("abort", () => {
        if (!this.#open.delete(id)) return;
        this.channel.send({ id, leave: true });
        reject(signal.reason as Error);
      });
      this.#open.set(id, resolve);
      this.channel.send({ id, method, path, body });
      this.#watch();
    });
  };

  close(): void {
    clearTimeout(this.#timer);
    this.channel.off("msg:custom", this.#hear);
  }

  readonly #hear: Hear = ({ id, status, headers }, [body]) => {
    const answer = this.#open.get(id);
    if (!answer) return;
    this.#open.delete(id);
    this.#watch();
    answer(new Response((body ?? null) as DataView<ArrayBuffer> | null, { status, headers }));
  };

  #watch(): void {
    clearTimeout(this.#timer);
    this.waits(false);
    if (this.#open.size > 0) this.#timer = setTimeout(() => this.waits(true), PATIENCE);
  }
}
