import { expect, test, vi } from "vitest";
import { type Channel, Kernel } from "../../src/engine/kernel";

type Sent = { id: string; path?: string; body?: string; leave?: boolean };

/** Python's end, in the hands of the test. */
function connect() {
  const hears: Parameters<Channel["on"]>[1][] = [];
  const sent: Sent[] = [];
  const channel: Channel = {
    get: () => null,
    send: (content) => sent.push(content as Sent),
    on: (_, hear) => hears.push(hear),
    off: (_, hear) => hears.splice(hears.indexOf(hear), 1),
  };
  const tell = (id: string, status: number, text: string) => {
    const body = new DataView(new TextEncoder().encode(text).buffer);
    hears.forEach((hear) => hear({ id, status, headers: { "X-Shape": "2,1" } }, [body]));
  };
  return { channel, sent, tell, hears };
}

test("answers find their questions, also those of another view of the same widget", async () => {
  const { channel, sent, tell } = connect();
  const [one, other] = [new Kernel(channel, () => undefined), new Kernel(channel, () => undefined)];
  const asked = [
    one.ask("/api/a", { method: "POST", body: "{}" }),
    one.ask("/api/b", {}),
    other.ask("/api/c", {}),
  ];
  expect(new Set(sent.map(({ id }) => id)).size).toBe(3);
  for (const { id, path } of sent.toReversed()) tell(id, path === "/api/b" ? 404 : 200, `of ${path}`);
  const answers = await Promise.all(asked);
  expect(answers.map(({ status }) => status)).toEqual([200, 404, 200]);
  expect(await Promise.all(answers.map((each) => each.text()))).toEqual([
    "of /api/a",
    "of /api/b",
    "of /api/c",
  ]);
  expect(answers[0]!.headers.get("X-Shape")).toBe("2,1");
});

test("who leaves says so, once", async () => {
  const { channel, sent, tell } = connect();
  const kernel = new Kernel(channel, () => undefined);
  const leaving = new AbortController();
  const asked = kernel.ask("/api/a", { signal: leaving.signal });
  leaving.abort();
  await expect(asked).rejects.toThrow("aborted");
  expect(sent.map(({ leave }) => leave)).toEqual([undefined, true]);
  tell(sent[0]!.id, 200, "too late");
  await expect(kernel.ask("/api/b", { signal: leaving.signal })).rejects.toThrow("aborted");
  expect(sent.length).toBe(2);
});

test("a kernel that is silent is told of until it answers", async () => {
  vi.useFakeTimers();
  const { channel, sent, tell, hears } = connect();
  const told: boolean[] = [];
  const kernel = new Kernel(channel, (waiting) => told.push(waiting));
  const asked = kernel.ask("/api/a", {});
  vi.advanceTimersByTime(10_000);
  expect(told.at(-1)).toBe(true);
  tell(sent[0]!.id, 200, "at last");
  await asked;
  vi.advanceTimersByTime(10_000);
  expect(told.at(-1)).toBe(false);
  kernel.close();
  expect(hears).toEqual([]);
  vi.useRealTimers();
});
