import { expect, test } from "vitest";
import { type SavedContents, SavedFile } from "../../src/engine/savedFile";
import type { Config, Model, TraceResponse } from "../../src/engine/types";

const CONFIG = { n_block: 2, n_head: 1, d_model: 2 } as unknown as Config;
const header = (
  name: string,
  text: string,
  ids: number[],
  matrices: SavedContents["sides"][0]["matrices"],
) => ({
  text,
  details: { name, config: CONFIG } as unknown as Model,
  trace: { ids, tokens: ids.map(String) } as unknown as TraceResponse,
  matrices,
});
const matrix = (name: string, ...shape: number[]) => ({ name, shape, first: 0 });

const CONTENTS: SavedContents = {
  query: "",
  views: ["compare", "lens"],
  flow: false,
  heads: [],
  blocks: [],
  ends: false,
  edits: 0,
  tokens: [7, 5],
  lens: [
    ["a", "b"],
    ["c", "d"],
  ],
  exchanges: [
    {
      path: "/api/attribute",
      request: { token: 7, through: [{ block: 1, head: 0, source: 2 }], along: null },
      response: { total: 3 },
    },
  ],
  sides: [
    header(
      "small",
      "one",
      [1, 2],
      [matrix("final", 1, 2), matrix("embedding", 1, 2), matrix("lens", 2, 3, 2)],
    ),
    header("small", "two", [1, 3], [matrix("final", 1, 2)]),
  ],
};
const NUMBERS = Float32Array.from({ length: 18 }, (_, i) => i);

async function post(path: string, body: object): Promise<Response> {
  return new SavedFile(CONTENTS, NUMBERS).fetch(path, { method: "POST", body: JSON.stringify(body) });
}

test("answers a request whatever the order of its fields, and only if all of them match", async () => {
  const request = { along: null, through: [{ source: 2, head: 0, block: 1 }], token: 7 };
  const input = { model: "small", text: [1, 2], edits: [] };
  expect(await (await post("/api/attribute", { ...input, ...request })).json()).toEqual({ total: 3 });
  const file = new SavedFile(CONTENTS, NUMBERS);
  expect(file.canAnswer("/api/attribute", request)).toBe(true);
  expect(file.canAnswer("/api/attribute", { ...request, token: 5 })).toBe(false);
  expect(file.canAnswer("/api/attribute", { ...request, count: 1 })).toBe(false);
  expect(file.canAnswer("/api/why", request)).toBe(false);
  expect((await post("/api/attribute", { ...input, ...request, token: 5 })).status).toBe(404);
});

test("reads the numbers of each text", async () => {
  const read = async (text: string | number[]) =>
    new Float32Array(
      await (await post("/api/sites", { model: "small", text, reads: [{ site: "final" }] })).arrayBuffer(),
    );
  expect([...(await read([1, 2]))]).toEqual([0, 1]);
  expect([...(await read("two"))]).toEqual([16, 17]);
  const file = new SavedFile(CONTENTS, NUMBERS);
  expect(file.canCompare("final")).toBe(true);
  expect(file.canCompare("embedding")).toBe(false);
  const { models } = (await (await post("/api/models", {})).json()) as { models: Model[] };
  expect(models.map(({ name }) => name)).toEqual(["small"]);
});

test("returns the logit lens with the probability of a saved token", async () => {
  const lens = async (token: number) => (await (await post("/api/lens", { token })).json()) as unknown;
  expect(await lens(5)).toEqual({
    tokens: [
      [
        { text: "a", probability: 4, chosen: 8 },
        { text: "b", probability: 5, chosen: 9 },
      ],
      [
        { text: "c", probability: 10, chosen: 14 },
        { text: "d", probability: 11, chosen: 15 },
      ],
    ],
  });
  expect(JSON.stringify(await lens(6))).toContain('"chosen":null');
  const last = await (await post("/api/lens", { token: 5, rows: [1, 2] })).json();
  expect(last).toEqual({
    tokens: [[{ text: "b", probability: 5, chosen: 9 }], [{ text: "d", probability: 11, chosen: 15 }]],
  });
});
