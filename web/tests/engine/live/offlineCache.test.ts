import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { type FileCache, OfflineCache } from "../../../src/engine/live/offlineCache";

const SITE = "https://host/user/site/";
const NUMBERS = "numbers";
const HASH = createHash("sha256").update(NUMBERS).digest("hex").slice(0, 16);
const PIECE = `${SITE}models/0/weights-${HASH}.bin`;

/** A host whose files can be changed, and that can be out of reach. */
function host(files: Record<string, string>) {
  const stored = new Map<string, Response>();
  const urlOf = (request: RequestInfo | URL) => (request instanceof Request ? request.url : String(request));
  const cache: FileCache = {
    match: (request) => Promise.resolve(stored.get(urlOf(request))?.clone()),
    put: (request, response) => Promise.resolve(void stored.set(urlOf(request), response)),
    delete: (request) => Promise.resolve(stored.delete(urlOf(request))),
    keys: () => Promise.resolve([...stored.keys()].map((url) => new Request(url))),
  };
  const state = { files, online: true, asked: [] as string[] };
  const fetchFile = ({ url }: Request) => {
    state.asked.push(url);
    if (!state.online) return Promise.reject(new TypeError("Failed to fetch"));
    const text = state.files[url.replace(/\?.*/, "")];
    return Promise.resolve(new Response(text ?? "", { status: text === undefined ? 404 : 200 }));
  };
  /** The text of an answer, once it has been stored. */
  const get = async (url: string) => {
    const storing: Promise<unknown>[] = [];
    const offline = new OfflineCache(cache, fetchFile, (each) => storing.push(each));
    const text = await (await offline.answer(new Request(url))).text();
    await Promise.all(storing);
    return text;
  };
  return { state, stored, cache, get };
}

test("asks the host first, and uses what is stored when the host is out of reach", async () => {
  const { state, get } = host({ [SITE]: "old page" });
  expect(await get(`${SITE}?text=a`)).toBe("old page");
  state.files[SITE] = "new page";
  expect(await get(`${SITE}?text=b`)).toBe("new page");
  state.online = false;
  expect(await get(`${SITE}?text=c`)).toBe("new page");
  await expect(get(`${SITE}other.json`)).rejects.toThrow("Failed to fetch");
});

test("stores the page once, whether the address names its file or not", async () => {
  const { state, stored, get } = host({ [SITE]: "page", [`${SITE}index.html`]: "page" });
  await get(SITE);
  expect([...stored.keys()]).toEqual([SITE]);
  state.online = false;
  expect(await get(`${SITE}index.html?text=a`)).toBe("page");
  state.online = true;
  stored.clear();
  await get(`${SITE}index.html`);
  state.online = false;
  expect(await get(SITE)).toBe("page");
});

test("fetches a piece of weights once", async () => {
  const { state, get } = host({ [PIECE]: NUMBERS });
  expect(await get(PIECE)).toBe(NUMBERS);
  expect(await get(PIECE)).toBe(NUMBERS);
  expect(state.asked).toEqual([PIECE]);
});

test("does not store errors", async () => {
  const { state, stored, get } = host({});
  await get(PIECE);
  expect(stored.size).toBe(0);
  state.files[PIECE] = NUMBERS;
  expect(await get(PIECE)).toBe(NUMBERS);
});

test("removes the pieces that a new index no longer lists, of that model only", async () => {
  const other = PIECE.replace("models/0", "models/1");
  const index = `${SITE}models/0/weights.json`;
  const { state, stored, get } = host({ [PIECE]: NUMBERS, [other]: NUMBERS, [index]: "not JSON" });
  for (const url of [PIECE, other, index]) await get(url);
  expect([...stored.keys()]).toEqual([PIECE, other]); // an index that cannot be read is not stored
  state.files[index] = JSON.stringify({ pieces: [{ file: "weights-ffffffffffffffff.bin" }] });
  await get(index);
  expect([...stored.keys()]).toEqual([other, index]);
});

test("does not store a damaged piece", async () => {
  const { state, get } = host({ [PIECE]: "numb" });
  expect(await get(PIECE)).toBe("numb");
  state.files[PIECE] = NUMBERS;
  expect(await get(PIECE)).toBe(NUMBERS);
});

test("answers even if there is no room to store", async () => {
  const { cache, get } = host({ [PIECE]: NUMBERS });
  cache.put = () => Promise.reject(new DOMException("full", "QuotaExceededError"));
  expect(await get(PIECE)).toBe(NUMBERS);
});
