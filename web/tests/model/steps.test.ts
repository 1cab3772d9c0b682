import { expect, test } from "vitest";
import type { Config } from "../../src/engine/types";
import { findStep, openingStep, PARTS, stepsOf } from "../../src/model/steps";
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

test("a model with caps has a step for each", () => {
  const names = (part: "head" | "final", config: Config) =>
    stepsOf(part, config, 0, 0).map(({ name }) => name);
  const capped = { ...CONFIG, score_cap: 50, logit_cap: 30 };
  expect(names("head", capped).join()).toContain("divide,cap,mask");
  expect(names("final", capped).join()).toContain("score,cap,choose");
  expect(findStep("block.1.head.0.capped", capped)).toMatchObject({ part: "head", block: 1 });
  expect(findStep("logits_raw", capped)).toMatchObject({ part: "final" });
  for (const part of ["head", "final"] as const) expect(names(part, CONFIG)).not.toContain("cap");
});

test("every norm opens on the normalized vectors", () => {
  for (const part of PARTS) {
    const steps = stepsOf(part, CONFIG, 0, 0).map(({ name }) => name);
    expect(openingStep(part), part).toBe(steps.includes("norm") ? "norm" : 0);
  }
});
