import { expect, test } from "vitest";
import { attributionTable, neighborsTable, stepsTable } from "../../src/layout/tables";

test("lists the contributions of tokens after their head", () => {
  const attribution = {
    position: 1,
    total: 3,
    parts: [
      { name: "block.0.head.2.output", value: 2 },
      { name: "embedding", value: 1 },
    ],
    heads: [{ block: 0, head: 2, values: [0.5, 1.5] }],
  };
  expect(attributionTable(attribution, ["a", " b"]).rows).toEqual([
    ["block.0.head.2.output", null, null, 2],
    ["block.0.head.2.output", 0, "a", 0.5],
    ["block.0.head.2.output", 1, " b", 1.5],
    ["embedding", null, null, 1],
  ]);
});

test("puts lists and runs below each other, with a name in each row", () => {
  const lists = [
    { stage: "embedding", neighbors: [{ text: "cat", cosine: 0.5 }] },
    { stage: "final", neighbors: [{ text: "dog", cosine: null }] },
  ];
  expect(neighborsTable(lists).rows).toEqual([
    ["embedding", "cat", 0.5],
    ["final", "dog", null],
  ]);
  const step = { step: 1, loss: 2, smoothed: 2, validation: null, lr_scale: 0.1, tokens: 64 };
  const steps = [{ ...step, gradient_norm: 1, sample: null }];
  expect(stepsTable([{ name: "my", steps }]).rows).toEqual([["my", 1, 2, 2, null, 0.1, 64]]);
});
