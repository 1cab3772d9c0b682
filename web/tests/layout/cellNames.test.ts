import { describe, expect, test } from "vitest";
import { cellTitle, changedBlocks, placedSiteName, pythonName, siteName } from "../../src/layout/cellNames";
import { de } from "../../src/messages/de";
import { en } from "../../src/messages/en";
import { stepsOf, PARTS } from "../../src/model/steps";
import type { Config } from "../../src/engine/types";
import { CONFIG } from "../config";

const TOKENS = ["The", " duck", " was"];
const PLAIN = { ...CONFIG, position: "learned" } as Config;

const titleOf = (name: string, row: number, column = 0, query?: number) =>
  cellTitle(en, { name, row, column, ...(query !== undefined && { query }) }, CONFIG, TOKENS, (id) =>
    id === 7 ? "␣pond" : undefined,
  );

test("titles say whose number it is", () => {
  expect(titleOf("block.0.head.1.query", 1, 3)).toBe("query of “␣duck”, dimension 3");
  expect(titleOf("block.0.head.1.masked", 2, 1)).toBe("masked score from “␣was” to “␣duck”");
  expect(titleOf("block.0.head.1.weighed", 1, 3, 2)).toBe(
    "weighted value of “␣duck”, dimension 3 for “␣was”",
  );
  expect(titleOf("block.0.hidden", 1, 3)).toBe("neuron of “␣duck”, neuron 3");
  expect(titleOf("block.0.normed.mean", 1)).toBe("mean of “␣duck”");
  expect(titleOf("logits", 1, 7)).toBe("logit of “␣pond” after “␣duck”");
  expect(titleOf("logits", 1, 8)).toBe("logit of “8” after “␣duck”");
  expect(titleOf("block.0.head.1.W_Q", 3, 1)).toBe("weight, row 3, column 1");
  expect(titleOf("block.0.head.1.b_Q", 3)).toBe("bias 3");
});

test("queries are called projected only if they are changed before they are compared", () => {
  expect(siteName(en, "block.0.head.1.query_raw", CONFIG)).toBe("projected query");
  expect(siteName(en, "block.0.head.1.query_raw", PLAIN)).toBe("query");
  expect(siteName(de, "block.0.head.1.key_raw", PLAIN)).toBe("Schlüssel");
  expect(siteName(en, "block.0.head.1.output", PLAIN)).toBe("head 0.1 output");
  expect(siteName(en, "block.0.output", PLAIN)).toBe("block output");
});

test("a site's full name says where it is", () => {
  const names = {
    "block.0.head.1.masked": "head 0.1 · masked score",
    "block.0.head.1.output": "head 0.1 output",
    "block.2.kv_head.0.key": "shared head 2.0 · key",
    "block.1.middle": "block 1 · residual stream after attention",
    "block.1.normed.mean": "block 1 · first norm · mean",
    "block.1.feedforward_normed.scale": "block 1 · feed-forward norm · scale",
    "final.scale": "final norm · scale",
    logits: "logit",
  };
  const shared = { ...PLAIN, n_kv_head: 1 } as Config;
  for (const [site, name] of Object.entries(names)) expect(placedSiteName(en, site, shared)).toBe(name);
  expect(placedSiteName(de, "block.0.head.1.weights", PLAIN)).toBe("Kopf 0.1 · Aufmerksamkeitsgewicht");
});

describe.each([
  ["English", en],
  ["German", de],
])("in %s", (_, words) => {
  test("every site of every step has a name in words", () => {
    const config = { ...CONFIG, qk_norm: true, post_norm: true, norm: "layer" } as Config;
    for (const each of [config, PLAIN, { ...PLAIN, feedforward: "gelu" } as Config])
      for (const part of PARTS)
        for (const name of stepsOf(part, each, 0, 1).flatMap(({ sites }) => sites)) {
          expect(siteName(words, name, each), name).toMatch(/^[A-Za-zäöüß 0-9:.-]+$/);
        }
  });
});

test("the block is named where it changes", () => {
  const cells = ["block.2.normed2", "block.2.input", "block.1.output", "block.1.middle", "block.0.W_2"];
  const named = (names: string[]) => names.map((name) => ({ name }));
  expect(changedBlocks(2, named(cells))).toEqual([null, null, 1, null, 0]);
  expect(changedBlocks(3, named(["final", "block.3.output", "embedding"]))).toEqual([null, 3, null]);
});

test("Python names can be pasted", () => {
  expect(pythonName({ name: "block.0.head.1.query", row: 1, column: 3 })).toBe(
    'trace["block.0.head.1.query"][1, 3]',
  );
  expect(pythonName({ name: "final.scale", row: 1, column: 0 })).toBe('trace["final.scale"][1]');
  expect(pythonName({ name: "block.0.W_1", row: 1, column: 3 })).toBe('model.weight("block.0.W_1")[1, 3]');
  expect(pythonName({ name: "block.0.head.1.weighed", row: 1, column: 3, query: 2 })).toBe(
    'trace["block.0.head.1.weights"][2, 1] * trace["block.0.head.1.value"][1, 3]',
  );
});
