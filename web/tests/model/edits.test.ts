import { expect, test } from "vitest";
import type { Edit } from "../../src/engine/types";
import {
  applicableEdits,
  balancedBlockRanges,
  setWeight,
  describeEdit,
  isEdited,
  isEditedCell,
  isSilenced,
} from "../../src/model/edits";

test("rescales the other weights so that all sum to 1", () => {
  const row = setWeight([0.5, 0.25, 0.25, 0], 0, 0.2);
  expect(row[0]).toBe(0.2);
  expect(row[1]).toBeCloseTo(0.4);
  expect(row[3]).toBe(0);
  expect(setWeight([1, 0, 0], 0, 0.4).reduce((sum, each) => sum + each)).toBeCloseTo(0.4); // all other weights are 0
});

test("describes what an edit does", () => {
  expect(describeEdit({ site: "block.3.head.1.output", value: 0 })).toMatchObject({
    target: "head",
    action: "ablated",
  });
  expect(describeEdit({ site: "block.3.input", text: "a", at: [2] })).toMatchObject({
    target: "stream",
    action: "patched",
  });
  expect(describeEdit({ site: "block.3.hidden", scale: 2, columns: [7] })).toMatchObject({
    target: "neuron",
    action: "scaled",
    amount: 2,
  });
  expect(describeEdit({ site: "block.0.head.0.weights", value: [[1]], at: [0] })).toMatchObject({
    target: "weight",
    action: "set",
  });
});

test("splits the blocks into ranges of similar cost, starting from the last block", () => {
  expect(balancedBlockRanges(1)).toEqual([[0, 1]]);
  expect(balancedBlockRanges(4)).toEqual([
    [2, 4], // 1 + 2 blocks to run
    [1, 2],
    [0, 1],
  ]);
  const turns = balancedBlockRanges(30);
  expect(
    turns
      .flatMap(([first, last]) => Array.from({ length: last - first }, (_, i) => first + i))
      .sort((a, b) => a - b),
  ).toEqual(Array.from({ length: 30 }, (_, i) => i));
  expect(turns.length).toBeLessThan(25);
});

test("drops edits that do not apply to another text, and extends weights to its length", () => {
  const config = { n_block: 2, n_head: 2, causal: true };
  const head = { site: "block.1.head.0.output", value: 0 };
  const stream = { site: "block.0.input", at: [3], value: 0 };
  const last = { site: "block.0.input", at: [-1], value: 0 };
  const weights = { site: "block.0.head.1.weights", at: [1], value: [[0.5, 0.5]] };
  expect(applicableEdits([head, stream, last, weights], config, 3)).toEqual([
    head,
    last,
    { ...weights, value: [[0.5, 0.5, 0]] },
  ]);
  expect(applicableEdits([weights], { ...config, causal: false }, 3)).toEqual([]);
  expect(applicableEdits([weights], config, 1)).toEqual([]);
  expect(applicableEdits([{ site: "block.2.input", value: 0 }], config, 9)).toEqual([]);
});

test("an edit marks its site, its head and its block, and no others", () => {
  const edits = [{ site: "block.1.head.1.output" }];
  for (const place of ["block.1.head.1.output", "block.1.head.1", "block.1"])
    expect(isEdited(edits, place)).toBe(true);
  for (const place of ["block.1.head.10", "block.10", "block.1.output"])
    expect(isEdited(edits, place)).toBe(false);
});

test("an edit sets the numbers at its positions and columns, or all of them", () => {
  const cell = { name: "block.0.hidden", row: 3, column: 5 };
  const sets = (edit: object) => isEditedCell([{ site: "block.0.hidden", ...edit }], cell, 4);
  expect(sets({})).toBe(true);
  expect(sets({ at: [-1], columns: [5] })).toBe(true);
  expect(sets({ at: [2] })).toBe(false);
  expect(sets({ columns: [4] })).toBe(false);
  expect(isEditedCell([{ site: "block.0.output" }], cell, 4)).toBe(false);
});

test("a head is silenced where its whole output is set to zero", () => {
  const site = "block.0.head.1.output";
  const is = (edit: object, row = 3) => isSilenced([{ site, ...edit } as Edit], "block.0.head.1", row);
  expect(is({ value: 0 })).toBe(true);
  expect(is({ value: 0, at: [3] })).toBe(true);
  expect(is({ value: 0, at: [2] })).toBe(false);
  expect(is({ value: 0, columns: [1] })).toBe(false);
  expect(is({ value: 1 })).toBe(false);
  expect(is({ scale: 0.5 })).toBe(false);
  expect(isSilenced([{ site, value: 0 } as Edit], "block.0.head.0", 3)).toBe(false);
});
