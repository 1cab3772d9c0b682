/** The worker's side of the connection: starts requests one after the other, in the order they arrived. */

import { ApiError } from "../client";
import type { AbortMessage, RequestMessage, ResponseMessage } from "./messages";

/** Computes the answer to a request, given its body: a Response, or a value to send as JSON. */
export type Route = (request: unknown, signal: AbortSignal) => unknown;

/** The routes by their paths. */
export type Routes = Readonly<Record<string, Route>>;

export class Dispatcher {
  readonly #queue: RequestMessage[] = [];
  readonly #controllers = new Map<number, AbortController>();
  #running = false;

  constructor(
    readonly routes: Routes,
    readonly send: (message: ResponseMessage) => void,
  ) {}

  receive(message: RequestMessage | AbortMessage): void {
    if ("abort" in message) {
      this.#controllers.get(message.id)?.abort();
      return;
    }
    this.#controllers.set(message.id, new AbortController());
    this.#queue.push(message);
    if (!this.#running) void this.#run();
  }

  /** A computation blocks the worker: what arrived meanwhile is read before the next request is started. */
  async #run(): Promise<void> {
    this.#running = true;
    await nextTask();
    for (let request = this.#queue.shift(); request; request = this.#queue.shift()) {
      void this.#answer(request); // while it waits for a file, others are answered
      await nextTask();
    }
    this.#running = false;
  }

  async #answer({ id, path, body }: RequestMessage): Promise<void> {
    const { signal } = this.#controllers.get(id)!;
    if (!signal.aborted) {
      const response = await this.#compute(path, body, signal);
      const { status, headers } = response;
      const content = await response.arrayBuffer();
      if (!signal.aborted) this.send({ id, status, headers: [...headers], body: content });
    }
    this.#controllers.delete(id);
  }

  async #compute(path: string, body: string | null, signal: AbortSignal): Promise<Response> {
    try {
      const answer = await this.#find(path)(body === null ? {} : JSON.parse(body), signal);
      return answer instanceof Response ? answer : Response.json(answer);
    } catch (error) {
      return toErrorResponse(error);
    }
  }

  #find(path: string): Route {
    const route = Object.hasOwn(this.routes, path) ? this.routes[path] : undefined;
    if (route) return route;
    throw new ApiError(404, "this needs Clearhead on a computer: pip install clearhead", "needs_python");
  }
}

/** An error in the form in which the server reports one. An error with a code is about the request. */
function toErrorResponse(reason: unknown): Response {
  const message = reason instanceof Error ? reason.message : String(reason);
  const { code, values = {}, status } = (reason ?? {}) as Partial<ApiError>;
  const known = typeof code === "string" ? code : ""; // a DOMException has a number
  return Response.json(
    { error: { message, code: known, values } },
    { status: status ?? (known ? 400 : 500) },
  );
}

/** Resolves after the messages that have already arrived. */
function nextTask(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  return new Promise((resolve) => {
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(null);
  });
}
