import { expect, test } from "vitest";
import { findStep } from "../../src/model/steps";
import { CONFIG } from "../config";

test("finds the step of every site", () => {
  expect(findStep("block.2.head.3.weights", CONFIG)).toEqual({
    part: "head",
    block: 2,
    head: 3,
    step: 5,
    site: 0,
  });
  expect(findStep("block.1.kv_head.1.value", CONFIG)).toMatchObject({
    part: "head",
    block: 1,
    head: 2,
    site: 2,
  });
  expect(findStep("block.0.input", CONFIG)).toMatchObject({ part: "embedding" });
  expect(findStep("block.2.input", CONFIG)).toMatchObject({ part: "norm", block: 2, site: 1 });
  expect(findStep("final.scale", CONFIG)).toMatchObject({ part: "final" });
  expect(findStep("nothing", CONFIG)).toBeNull();
});
