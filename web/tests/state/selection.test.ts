import { expect, test } from "vitest";
import type { Config } from "../../src/engine/types";
import { Matrix } from "../../src/model/matrix";
import type { Area } from "../../src/model/sites";
import { Selection, type ShownText } from "../../src/state/selection.svelte";
import { CONFIG } from "../config";

/** A text of two tokens whose feed-forward networks have four neurons. */
function selectIn(query: string, activations: number[]): Selection {
  const hidden = new Matrix(Float32Array.from(activations), 2, 4);
  const matrices = {
    get: ({ name, rows, columns }: Area) =>
      name === "block.1.hidden" ? hidden.slice(rows, columns) : undefined,
    prefetch: () => Promise.resolve(),
    readAhead: () => undefined,
  };
  const selection = new Selection(query, null);
  selection.shown = {
    config: { ...CONFIG, d_hidden: 4, feedforward: "relu" } as Config,
    trace: { tokens: ["a", "b"], ids: [1, 2], next: [] },
    matrices,
  } as unknown as ShownText;
  return selection;
}

const ACTIVATIONS = [0, 0, 0.5, 0, 0, 2, 1, 0];

test("the feed-forward network opens on the most active neuron of the selected token", () => {
  const last = selectIn("?part=feedforward&block=1&step=activate", ACTIVATIONS);
  expect(last.cell).toEqual({ name: "block.1.hidden", row: 1, column: 1 });
  const first = selectIn("?part=feedforward&block=1&row=0", ACTIVATIONS);
  expect(first.cell).toEqual({ name: "block.1.hidden_raw", row: 0, column: 2 });
  const chosen = selectIn("?part=feedforward&block=1&column=3", ACTIVATIONS);
  expect(chosen.cell?.column).toBe(3);
});

test("a neuron is inactive if it is 0 for every token", () => {
  const select = (column: number, part = "feedforward") =>
    selectIn(`?part=${part}&block=1&column=${column}`, ACTIVATIONS).isInactiveNeuron;
  expect([0, 1, 2, 3].map((column) => select(column))).toEqual([true, false, false, true]);
  expect(select(0, "norm2")).toBe(false); // a dimension of the residual stream
});

test("opening the learning view keeps the selection and its address", () => {
  const selection = selectIn("?block=1&row=0&step=sum&open=block.1.input:0:1", ACTIVATIONS);
  selection.location.view = "learning";
  expect(selection.query).toBe("?view=learning&block=1&step=sum&row=0&open=block.1.input%3A0%3A1");
  selection.goTo({ lesson: "gradient", gradient: "final", chain: [] });
  selection.goTo({ taken: 2, lessonStep: -1 });
  expect([selection.row, selection.openCells.length]).toEqual([0, 1]);
  selection.goTo({ row: 1 });
  expect([selection.row, selection.openCells.length]).toEqual([1, 0]);
});
