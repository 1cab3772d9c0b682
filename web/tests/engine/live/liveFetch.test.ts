import { expect, test } from "vitest";
import { ApiClient } from "../../../src/engine/client";
import { LiveConnection, type WorkerPort } from "../../../src/engine/live/liveFetch";
import type { FromWorker, RequestMessage, ToWorker } from "../../../src/engine/live/messages";

/** A connection whose worker is played by the test. */
function connect(onprogress?: ConstructorParameters<typeof LiveConnection>[2]) {
  const sent: ToWorker[] = [];
  const worker: WorkerPort = {
    postMessage: (message) => sent.push(message),
    onmessage: null,
    onerror: null,
    terminate: () => undefined,
  };
  const connection = new LiveConnection(worker, { address: "https://host/site/" }, onprogress);
  const receive = (data: FromWorker) => worker.onmessage!({ data } as MessageEvent<FromWorker>);
  const respond = (id: number, text: string, status = 200) =>
    receive({ id, status, headers: [["X-Shape", "1,2"]], body: new TextEncoder().encode(text).buffer });
  const fail = (message: string) => worker.onerror!({ message, preventDefault() {} } as ErrorEvent);
  return { connection, sent, receive, respond, fail };
}

test("starts the worker and matches responses to requests", async () => {
  const { connection, sent, respond } = connect();
  expect(sent.shift()).toEqual({ start: { address: "https://host/site/" } });
  const requests = ["/api/a", "/api/b"].map((path) => connection.fetch(path, { body: "{}" }));
  const ids = (sent as RequestMessage[]).map(({ id }) => id);
  expect(sent).toEqual([
    { id: ids[0], path: "/api/a", body: "{}" },
    { id: ids[1], path: "/api/b", body: "{}" },
  ]);
  respond(ids[1]!, "second");
  respond(ids[0]!, "first", 404);
  const [first, second] = await Promise.all(requests);
  expect([first!.status, await first!.text()]).toEqual([404, "first"]);
  expect([second!.status, await second!.text()]).toEqual([200, "second"]);
  expect(second!.headers.get("X-Shape")).toBe("1,2");
});

test("an aborted request is rejected at once, and the worker is told", async () => {
  const { connection, sent, respond } = connect();
  const controller = new AbortController();
  const request = connection.fetch("/api/a", { signal: controller.signal });
  const { id } = sent.at(-1) as RequestMessage;
  controller.abort();
  await expect(request).rejects.toMatchObject({ name: "AbortError" });
  expect(sent.at(-1)).toEqual({ id, abort: true });
  respond(id, "too late"); // ignored
});

test("a request that was aborted beforehand is not sent, and one that was answered is not aborted", async () => {
  const { connection, sent, respond } = connect();
  const aborted = connection.fetch("/api/a", { signal: AbortSignal.abort() });
  await expect(aborted).rejects.toMatchObject({ name: "AbortError" });
  expect(sent.length).toBe(1); // the start
  const controller = new AbortController();
  const answered = connection.fetch("/api/a", { signal: controller.signal });
  respond((sent.at(-1) as RequestMessage).id, "answer");
  await answered;
  controller.abort();
  expect(sent.length).toBe(2);
});

test("reports progress", () => {
  const seen: unknown[] = [];
  const { receive } = connect((progress) => seen.push(progress));
  receive({ model: "my", done: 5, total: 10 });
  expect(seen).toEqual([{ model: "my", done: 5, total: 10 }]);
});

test("when the worker stops, requests fail with its reason, including later ones", async () => {
  const { connection, fail } = connect();
  const client = new ApiClient(connection.fetch);
  const request = client.models();
  fail("out of memory");
  const expected = { status: 500, code: "engine_stopped", values: { reason: "out of memory" } };
  await expect(request).rejects.toMatchObject(expected);
  await expect(client.models()).rejects.toMatchObject(expected);
});
