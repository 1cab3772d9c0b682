import { expect, test } from "vitest";
import {
  attributionTable,
  headScoresTable,
  neighborsTable,
  scoreTable,
  stepsTable,
} from "../../src/layout/tables";

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

test("lists the scores of heads in their order", () => {
  const kinds = { previous: [[0.1, 0.9]], induction: [[0.2, 0.3]] };
  const heads = [
    { block: 0, head: 1 },
    { block: 0, head: 0 },
  ];
  expect(headScoresTable(heads, { kinds, chance: {} })).toEqual({
    columns: ["block", "head", "previous", "first", "repeated", "induction", "antecedent"],
    rows: [
      [0, 1, 0.9, null, null, 0.3, null],
      [0, 0, 0.1, null, null, 0.2, null],
    ],
  });
});

test("stacks lists and runs, with a name in each row", () => {
  const lists = [
    { stage: "embedding", neighbors: [{ text: "cat", cosine: 0.5 }] },
    { stage: "final", neighbors: [{ text: "dog", cosine: null }] },
  ];
  expect(neighborsTable(lists).rows).toEqual([
    ["embedding", "cat", 0.5],
    ["final", "dog", null],
  ]);
  const step = { step: 1, loss: 2, smoothed: 2, validation: null, learning_rate: 0.1, tokens: 64 };
  const steps = [{ ...step, gradient_norm: 1, sample: null }];
  expect(stepsTable([{ name: "my", steps }]).rows).toEqual([["my", 1, 2, 2, null, 0.1, 64]]);
});

test("lists the parts of a score on either side", () => {
  const key = [{ name: "embedding", value: 3 }];
  const query = [
    { name: "position", value: 2 },
    { name: "embedding", value: 1 },
  ];
  expect(scoreTable({ score: 3, key, query, pairs: [] }).rows).toEqual([
    ["key", "embedding", 3],
    ["query", "position", 2],
    ["query", "embedding", 1],
  ]);
});
