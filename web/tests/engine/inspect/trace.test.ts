/** Every site of many kinds of models, with and without edits, agrees with PyTorch. */

import { describe, expect, test } from "vitest";
import { Edits } from "../../../src/engine/inspect/edits";
import { allSites, isVectorSite, parseSite, siteName, siteShape } from "../../../src/engine/inspect/sites";
import { Trace } from "../../../src/engine/inspect/trace";
import { weight, weightNames } from "../../../src/engine/inspect/weights";
import { indexOfLargest } from "../../../src/model/matrix";
import { decode, makeNetwork, parseIds, recorded, relativeError } from "../recorded";

const TOLERANCE = 1e-5;

describe.skipIf(Object.keys(recorded).length === 0)("with models recorded by the Python tests", () => {
  describe.each(Object.keys(recorded))("%s", (kind) => {
    const model = recorded[kind]!;
    const network = makeNetwork(model);
    const { config } = model;

    test("has the same names", () => {
      expect(allSites(config).map(siteName)).toEqual(Object.keys(model.traces[0]!.sites));
      expect(weightNames(config).sort()).toEqual(Object.keys(model.weights).sort());
    });

    test("has the same weights", () => {
      for (const [name, numbers] of Object.entries(model.weights)) {
        const { shape, read } = weight(network, name);
        expect(shape, name).toEqual(numbers.shape);
        expect(relativeError(read().values, decode(numbers), shape[1] ?? 1), name).toBeLessThan(TOLERANCE);
      }
    });

    test.each(model.traces.map((trace, i) => [describeTrace(trace), i] as const))("%s", (_, i) => {
      const { ids, edits, sites } = model.traces[i]!;
      const parsed = Edits.parse(edits, config, (text) => new Trace(network, parseIds(text)));
      const plain = new Trace(network, ids);
      const trace = edits.length > 0 ? plain.withEdits(parsed) : plain;
      for (const [name, numbers] of Object.entries(sites)) {
        const site = parseSite(name, config);
        expect(siteShape(site, config, ids.length), name).toEqual(numbers.shape);
        // Values that are small only by cancellation are measured against those they are computed from: a mean may be
        // close to 0, and so may the few scores that a mask leaves.
        const measure = sites[name.replace(/mean$/, "scale").replace(/masked$/, "scaled")]!;
        const columns = numbers.shape[1] ?? 1;
        const error = relativeError(trace.read(name).values, decode(numbers), columns, decode(measure));
        expect(error, name).toBeLessThan(TOLERANCE);
      }
    });

    test("reads rows and columns as parts of the whole", () => {
      const trace = new Trace(network, model.traces[0]!.ids);
      const rows = [trace.length - 1, 0];
      for (const site of allSites(config)) {
        const whole = trace.read(siteName(site));
        const columns = isVectorSite(site) ? [0] : [1, 0];
        const part = trace.read(siteName(site), rows, columns);
        const expected = rows.flatMap((row) => columns.map((column) => whole.at(row, column)));
        part.values.forEach((value, i) => expect(value, siteName(site)).toBeCloseTo(expected[i]!, 5));
      }
    });

    test.skipIf(!config.causal)("continues a text as if it had been traced at once", () => {
      const { ids } = model.traces[0]!;
      const other = [...ids.slice(0, 3), ...ids.slice(0, 2)];
      const [continued, direct] = [new Trace(network, ids).after(other, 3), new Trace(network, other)];
      for (const name of ["block.1.input", "logits"]) {
        const expected = direct.read(name);
        const error = relativeError(continued.read(name).values, expected.values, expected.columns);
        expect(error, name).toBeLessThan(TOLERANCE);
      }
    });

    test.skipIf(!model.greedy)("generates the same tokens", () => {
      const { prompt, ids } = model.greedy!;
      const generated: number[] = [];
      for (let trace = new Trace(network, prompt); generated.length < ids.length;) {
        generated.push(indexOfLargest(trace.read("logits", [trace.length - 1]).values));
        const text = [...trace.ids, generated.at(-1)!];
        const isFull = text.length > config.n_context;
        trace = isFull ? new Trace(network, text.slice(-config.n_context)) : trace.after(text, trace.length);
      }
      expect(generated).toEqual(ids);
    });
  });
});

function describeTrace({ ids, edits }: { ids: number[]; edits: object[] }): string {
  return `${ids.length} tokens${edits.map((edit) => `, ${JSON.stringify(edit).slice(0, 70)}`).join("")}`;
}
