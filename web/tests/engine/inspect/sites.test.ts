import { expect, test } from "vitest";
import { makeSite, parseSite, siteName, siteShape } from "../../../src/engine/inspect/sites";
import { CONFIG } from "../../config";

const config = { ...CONFIG, n_block: 2, n_head: 2, n_kv_head: 1, d_head: 4 };

test("parses names and the lectures' symbols", () => {
  expect(parseSite("block.1.head.0.weights", config)).toEqual(makeSite("weights", 1, { head: 0 }));
  expect(parseSite("block.0.kv_head.0.k", config)).toEqual(makeSite("key", 0, { kvHead: 0 }));
  expect(siteName(parseSite("block.0.t3", config))).toBe("block.0.middle");
  expect(siteShape(parseSite("block.0.head.1.output", config), config, 5)).toEqual([5, 8]);
});

test.each([
  ["block.2.input", /blocks 0 to 1/],
  ["block.0.head.2.query", /heads 0 to 1/],
  ["block.0.kv_head.1.key", /kv_heads 0 to 0/],
  ["block.0.kv_head.0.query", /expected key, value/],
  ["nothing", /expected embedding/],
  ["toString", /expected a name/],
  ["block.0.constructor", /does not exist/],
])("refuses %s", (name, message) => {
  expect(() => parseSite(name, config)).toThrow(message);
});
