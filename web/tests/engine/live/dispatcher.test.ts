import { expect, test, vi } from "vitest";
import { ApiError } from "../../../src/engine/client";
import { Dispatcher, type Routes } from "../../../src/engine/live/dispatcher";
import type { ResponseMessage } from "../../../src/engine/live/messages";

/** Waits as long as a busy machine may need. */
const waitFor = (check: () => void) => vi.waitFor(check, { timeout: 30_000 });

function dispatch(routes: Routes) {
  const sent: ResponseMessage[] = [];
  const dispatcher = new Dispatcher(routes, (message) => sent.push(message));
  const text = (id: number) => new TextDecoder().decode(sent.find((message) => message.id === id)!.body);
  return { dispatcher, sent, text };
}

test("answers requests in order, as JSON or as the route's own response", async () => {
  const { dispatcher, sent, text } = dispatch({
    "/api/double": (request) => ({ twice: 2 * (request as { number: number }).number }),
    "/api/matrix": () => new Response(new Float32Array([1, 2]), { headers: { "X-Shape": "1,2" } }),
  });
  dispatcher.receive({ id: 1, path: "/api/double", body: '{"number": 21}' });
  dispatcher.receive({ id: 2, path: "/api/matrix", body: null });
  await waitFor(() => expect(sent.map(({ id }) => id)).toEqual([1, 2]));
  expect(text(1)).toBe('{"twice":42}');
  expect(new Float32Array(sent[1]!.body)).toEqual(new Float32Array([1, 2]));
  expect(new Headers(sent[1]!.headers).get("X-Shape")).toBe("1,2");
  expect(sent.map(({ status }) => status)).toEqual([200, 200]);
});

test("does not compute a request that was aborted before it began", async () => {
  const computed: number[] = [];
  const { dispatcher, sent } = dispatch({
    "/api/test": (request) => computed.push((request as { number: number }).number),
  });
  for (let id = 0; id < 4; id++) dispatcher.receive({ id, path: "/api/test", body: `{"number": ${id}}` });
  dispatcher.receive({ id: 1, abort: true });
  dispatcher.receive({ id: 2, abort: true });
  dispatcher.receive({ id: 99, abort: true }); // one that was answered long ago
  await waitFor(() => expect(sent.map(({ id }) => id)).toEqual([0, 3]));
  expect(computed).toEqual([0, 3]);
});

test("reads an abort that arrived during a computation before starting the next one", async () => {
  const { port1, port2 } = new MessageChannel();
  const computed: number[] = [];
  const { dispatcher, sent } = dispatch({
    "/api/test": (request) => {
      computed.push((request as { number: number }).number);
      if (computed.length === 1) port2.postMessage({ id: 1, abort: true });
    },
  });
  port1.onmessage = ({ data }) => dispatcher.receive(data as { id: number; abort: true });
  for (let id = 0; id < 3; id++) dispatcher.receive({ id, path: "/api/test", body: `{"number": ${id}}` });
  await waitFor(() => expect(sent.map(({ id }) => id)).toEqual([0, 2]));
  expect(computed).toEqual([0, 2]);
  port1.close();
});

test("tells a running route that it was aborted, and sends nothing", async () => {
  let aborted = false;
  const { dispatcher, sent } = dispatch({
    "/api/long": async (_, signal) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      aborted = true;
    },
    "/api/short": () => "done",
  });
  dispatcher.receive({ id: 1, path: "/api/long", body: null });
  dispatcher.receive({ id: 2, path: "/api/short", body: null }); // does not wait for the first
  await waitFor(() => expect(sent.map(({ id }) => id)).toEqual([2]));
  dispatcher.receive({ id: 1, abort: true });
  await waitFor(() => expect(aborted).toBe(true));
  dispatcher.receive({ id: 3, path: "/api/short", body: null });
  await waitFor(() => expect(sent.map(({ id }) => id)).toEqual([2, 3]));
});

test("reports errors as the server does", async () => {
  const { dispatcher, sent, text } = dispatch({
    "/api/refused": () => {
      throw new ApiError(400, "no token", "no_token", { token: "</script>" });
    },
    "/api/coded": () => {
      throw Object.assign(new Error("too long"), { code: "too_long", values: { tokens: 3 } });
    },
    "/api/broken": () => Promise.reject(new Error("a bug")),
  });
  ["/api/refused", "/api/broken", "/api/train", "toString", "/api/coded"].forEach((path, id) =>
    dispatcher.receive({ id, path, body: null }),
  );
  await waitFor(() => expect(sent.length).toBe(5));
  const found = [0, 1, 2, 3, 4].map((id) => [sent.find((message) => message.id === id)!.status, text(id)]);
  expect(found[0]).toEqual([
    400,
    '{"error":{"message":"no token","code":"no_token","values":{"token":"</script>"}}}',
  ]);
  expect(found[1]).toEqual([500, '{"error":{"message":"a bug","code":"","values":{}}}']);
  expect(found[2]![0]).toBe(404);
  expect(found[2]![1]).toContain('"code":"needs_python"');
  expect(found[3]![0]).toBe(404);
  expect(found[4]).toEqual([400, '{"error":{"message":"too long","code":"too_long","values":{"tokens":3}}}']);
});
