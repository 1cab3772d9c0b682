import { expect, test } from "vitest";
import { type Contents, Recording } from "../../src/engine/savedFile";
import type { Config, Model, TraceAnswer } from "../../src/engine/client";

const CONFIG = { n_block: 2, n_head: 1, d_model: 2 } as unknown as Config;
const told = (name: string, text: string, ids: number[], matrices: Contents["sides"][0]["matrices"]) => ({
  text,
  details: { name, config: CONFIG } as unknown as Model,
  trace: { ids, tokens: ids.map(String) } as unknown as TraceAnswer,
  matrices,
});
const matrix = (name: string, ...shape: number[]) => ({ name, shape, first: 0 });

const CONTENTS: Contents = {
  query: "",
  views: ["compare", "lens"],
  flow: false,
  heads: [],
  blocks: [],
  ends: false,
  edits: 0,
  words: [7, 5],
  lens: [
    ["a", "b"],
    ["c", "d"],
  ],
  exchanges: [
    {
      path: "/api/attribute",
      asked: { word: 7, through: [{ block: 1, head: 0, source: 2 }], along: null },
      answer: { total: 3 },
    },
  ],
  sides: [
    told("small", "one", [1, 2], [matrix("final", 1, 2), matrix("embedding", 1, 2), matrix("lens", 2, 3, 2)]),
    told("small", "two", [1, 3], [matrix("final", 1, 2)]),
  ],
};
const NUMBERS = Float32Array.from({ length: 18 }, (_, i) => i);

async function ask(path: string, asked: object): Promise<Response> {
  return new Recording(CONTENTS, NUMBERS).ask(path, { method: "POST", body: JSON.stringify(asked) });
}

test("a question is known whatever the order of what is asked, and only if all of it is", async () => {
  const asked = { along: null, through: [{ source: 2, head: 0, block: 1 }], word: 7 };
  const about = { model: "small", text: [1, 2], edits: [] };
  expect(await (await ask("/api/attribute", { ...about, ...asked })).json()).toEqual({ total: 3 });
  const recording = new Recording(CONTENTS, NUMBERS);
  expect(recording.knows("/api/attribute", asked)).toBe(true);
  expect(recording.knows("/api/attribute", { ...asked, word: 5 })).toBe(false);
  expect(recording.knows("/api/attribute", { ...asked, count: 1 })).toBe(false);
  expect(recording.knows("/api/why", asked)).toBe(false);
  expect((await ask("/api/attribute", { ...about, ...asked, word: 5 })).status).toBe(404);
});

test("each text has its own numbers", async () => {
  const read = async (text: string | number[]) =>
    new Float32Array(
      await (await ask("/api/sites", { model: "small", text, reads: [{ site: "final" }] })).arrayBuffer(),
    );
  expect([...(await read([1, 2]))]).toEqual([0, 1]);
  expect([...(await read("two"))]).toEqual([16, 17]);
  const recording = new Recording(CONTENTS, NUMBERS);
  expect(recording.compares("final")).toBe(true);
  expect(recording.compares("embedding")).toBe(false);
  const { models } = (await (await ask("/api/models", {})).json()) as { models: Model[] };
  expect(models.map(({ name }) => name)).toEqual(["small"]);
});

test("the lens tells how likely a word is that was kept", async () => {
  const lens = async (word: number) => (await (await ask("/api/lens", { word })).json()) as unknown;
  expect(await lens(5)).toEqual({
    words: [
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
});
