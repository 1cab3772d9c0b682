import { expect, test, vi } from "vitest";
import { type WidgetModel, KernelConnection } from "../../src/engine/kernel";

type Sent = { id: string; path?: string; body?: string; leave?: boolean };

/** A widget model. The test plays its Python side. */
function connect() {
  const handlers: Parameters<WidgetModel["on"]>[1][] = [];
  const sent: Sent[] = [];
  const model: WidgetModel = {
    get: () => null,
    send: (content) => sent.push(content as Sent),
    on: (_, handler) => handlers.push(handler),
    off: (_, handler) => handlers.splice(handlers.indexOf(handler), 1),
  };
  const respond = (id: string, status: number, text: string) => {
    const body = new DataView(new TextEncoder().encode(text).buffer);
    handlers.forEach((handler) => handler({ id, status, headers: { "X-Shape": "2,1" } }, [body]));
  };
  return { model, sent, respond, handlers };
}

test("matches responses to requests, even with another view of the same widget", async () => {
  const { model, sent, respond } = connect();
  const [one, other] = [
    new KernelConnection(model, () => undefined),
    new KernelConnection(model, () => undefined),
  ];
  const requests = [
    one.fetch("/api/a", { method: "POST", body: "{}" }),
    one.fetch("/api/b", {}),
    other.fetch("/api/c", {}),
  ];
  expect(new Set(sent.map(({ id }) => id)).size).toBe(3);
  for (const { id, path } of sent.toReversed()) respond(id, path === "/api/b" ? 404 : 200, `of ${path}`);
  const responses = await Promise.all(requests);
  expect(responses.map(({ status }) => status)).toEqual([200, 404, 200]);
  expect(await Promise.all(responses.map((response) => response.text()))).toEqual([
    "of /api/a",
    "of /api/b",
    "of /api/c",
  ]);
  expect(responses[0]!.headers.get("X-Shape")).toBe("2,1");
});

test("tells the kernel only once that a request was aborted", async () => {
  const { model, sent, respond } = connect();
  const kernel = new KernelConnection(model, () => undefined);
  const controller = new AbortController();
  const request = kernel.fetch("/api/a", { signal: controller.signal });
  controller.abort();
  await expect(request).rejects.toThrow("aborted");
  expect(sent.map(({ leave }) => leave)).toEqual([undefined, true]);
  respond(sent[0]!.id, 200, "too late");
  await expect(kernel.fetch("/api/b", { signal: controller.signal })).rejects.toThrow("aborted");
  expect(sent.length).toBe(2);
});

test("reports that it is waiting until the kernel responds", async () => {
  vi.useFakeTimers();
  const { model, sent, respond, handlers } = connect();
  const waitingStates: boolean[] = [];
  const kernel = new KernelConnection(model, (waiting) => waitingStates.push(waiting));
  const request = kernel.fetch("/api/a", {});
  vi.advanceTimersByTime(10_000);
  expect(waitingStates.at(-1)).toBe(true);
  respond(sent[0]!.id, 200, "at last");
  await request;
  vi.advanceTimersByTime(10_000);
  expect(waitingStates.at(-1)).toBe(false);
  kernel.close();
  expect(handlers).toEqual([]);
  vi.useRealTimers();
});
