import { expect, test } from "vitest";
import { de } from "../../src/messages/de";
import { en } from "../../src/messages/en";
import { describeCell } from "../../src/views/matrix/describeCell";

const visible = (row: number): [number, number] => [Math.max(0, row - 2), row + 1];
const CELL = { row: 3, column: 2, rowName: "tired", columnName: "it", visible };

test("describes attention weights in words", () => {
  expect(describeCell(en, { ...CELL, part: "weights", value: 0.35 })).toBe(
    "“tired” puts 35% of its attention on “it”",
  );
  expect(describeCell(de, { ...CELL, part: "weights", value: 0.35 })).toBe(
    "„tired“ richtet 35% seiner Aufmerksamkeit auf „it“",
  );
});

test("says why a cell is masked, and never gives its weight", () => {
  const future = { ...CELL, column: 4 };
  expect(describeCell(en, { ...future, part: "weights", value: 0 })).toBe(
    "“tired” cannot attend to “it”, which comes later",
  );
  expect(describeCell(en, { ...future, part: "masked", value: -Infinity })).toContain("cannot attend");
  expect(describeCell(en, { ...CELL, column: 0, part: "weights", value: 0 })).toContain("window");
  expect(describeCell(en, { ...future, part: "scores", value: 1.5 })).toBe(
    "Score from “tired” to “it”: 1.50\n“tired” cannot attend to “it”, which comes later",
  );
});

test("names the quantity of its step", () => {
  const scaled = { ...CELL, part: "scaled", value: 1.5 };
  expect(describeCell(en, scaled)).toBe("Scaled score from “tired” to “it”: 1.50");
  expect(describeCell(de, scaled)).toContain("Skalierter Score von „tired“ zu „it“");
  expect(describeCell(en, { ...scaled, part: "masked" })).toBe("Masked score from “tired” to “it”: 1.50");
});

test("says which values a query cannot see", () => {
  const future = { ...CELL, part: "weighed", columnName: "5", queryName: "too", value: 0 };
  const said = (visible: [number, number]) => describeCell(en, { ...future, visible: () => visible });
  expect(said([0, 0])).toBe("The mask keeps “too” from attending to “tired”");
  expect(said([0, Infinity])).toBe("“tired”, dimension 5: 0.00");
});

test("names the columns of other matrices", () => {
  const number = (part: string, columnName: string) =>
    describeCell(en, { ...CELL, part, columnName, value: 0.0312 });
  expect(number("query", "5")).toBe("“tired”, dimension 5: 0.031");
  expect(number("hidden", "5")).toBe("“tired”, neuron 5: 0.031");
  expect(number("normed.scale", "σ")).toBe("“tired”, σ: 0.031");
  expect(number("logits", "␣a")).toBe("“tired”, “␣a”: 0.031");
  expect(describeCell(en, { ...CELL, part: "query", value: NaN })).toBe("");
});
