/** The engine answers the page's requests as the server does. */

import { describe, expect, test } from "vitest";
import { ApiError } from "../../../src/engine/client";
import { makeRoutes } from "../../../src/engine/live/routes";
import type { LiveModel } from "../../../src/engine/live/traceCache";
import { decodeMatrices } from "../../../src/model/matrix";
import { decode, makeNetwork, recorded } from "../recorded";
import { makeNetwork as makeGpuNetwork } from "../webgpu/network";

const TOLERANCE = 2e-5;

describe.skipIf(Object.keys(recorded).length === 0)("with models recorded by the Python tests", () => {
  describe.each(Object.keys(recorded))("%s", (kind) => {
    const model = recorded[kind]!;
    const live = { network: makeNetwork(model), tokenizer: makeTokenizer(model.characters) };
    const routes = makeRoutes({
      open: (name) => {
        if (name === "model") return Promise.resolve(live);
        return Promise.reject(new ApiError(404, `there is no model ${name}`, "model_not_found", { name }));
      },
      loaded: (name) => (name === "model" ? live : undefined),
    });

    test.each(model.exchanges.map(({ path, body }, i) => [`${path} ${JSON.stringify(body)}`, i] as const))(
      "%s",
      async (_, i) => {
        const { path, body, status, json, matrices } = model.exchanges[i]!;
        const answer = routes[path]!(body);
        if (status !== 200) return expectError(answer, status, json as ErrorBody);
        if (!matrices) return expectClose(byName(await answer), byName(json), path);
        const response = (await answer) as Response;
        const shapes = response.headers.get("X-Shape")!;
        expect(shapes).toBe(matrices.shapes.map((shape) => shape.join()).join(";"));
        const parts = decodeMatrices(await response.arrayBuffer(), shapes);
        const values = parts.flatMap((part) => Array.from(part.values));
        expectClose(values, Array.from(decode({ shape: [], data: matrices.data })), path);
      },
    );
  });
});

interface ErrorBody {
  error: { code: string; values: Record<string, string | number> };
}

async function expectError(answer: Promise<unknown>, status: number, { error }: ErrorBody): Promise<void> {
  const reason: unknown = await answer.catch((thrown: unknown) => thrown);
  expect(reason).toBeInstanceOf(ApiError);
  const { code, values } = error;
  expect(reason).toMatchObject({ status, code, values });
}

/** Compares numbers relative to the largest one in their list or object, and everything else exactly. */
function expectClose(actual: unknown, expected: unknown, place: string, size = 0): void {
  if (typeof expected === "number" && typeof actual === "number" && Number.isFinite(expected)) {
    const largest = Math.max(size, Math.abs(expected), 0.1);
    expect(Math.abs(actual - expected), `${place}: ${actual}, expected ${expected}`).toBeLessThan(
      TOLERANCE * largest,
    );
  } else if (Array.isArray(expected)) {
    expect(actual, place).toHaveLength(expected.length);
    const numbers = expected.map((item) => Math.abs(Number(item?.value ?? item?.logit ?? item)));
    const largest = Math.max(size, ...numbers.filter(Number.isFinite));
    expected.forEach((item, i) => expectClose((actual as unknown[])[i], item, `${place}[${i}]`, largest));
  } else if (typeof expected === "object" && expected !== null) {
    expect(Object.keys(actual as object).sort(), place).toEqual(Object.keys(expected).sort());
    for (const [name, item] of Object.entries(expected))
      expectClose((actual as Record<string, unknown>)[name], item, `${place}.${name}`, size);
  } else expect(actual, place).toBe(expected);
}

/** Sorts lists of parts by name: those of nearly equal size may be in either order. */
function byName(answer: unknown): unknown {
  const sorted = { ...(answer as Record<string, unknown>) };
  for (const list of ["parts", "query", "key", "pairs", "heads"])
    if (Array.isArray(sorted[list]) && areNamed(sorted[list]))
      sorted[list] = sorted[list].toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
  return sorted;
}

function areNamed(list: unknown[]): boolean {
  return typeof list[0] === "object" && !Array.isArray(list[0]);
}

function nameOf({ name, query, key, block, head }: Record<string, unknown>): string {
  return JSON.stringify([name, query, key, block, head]);
}

/** One token per character; the last id ends a text. */
function makeTokenizer(characters: string) {
  const pieces = (ids: number[]) => ids.map((id) => characters[id] ?? "<|endoftext|>");
  return {
    startIds: [],
    encode: (text: string) => Array.from(text, (character) => characters.indexOf(character)),
    decode: (ids: number[]) => ids.map((id) => characters[id] ?? "").join(""),
    pieces,
    hasText: (id: number) => id < characters.length,
  };
}

test("a model that is dropped from memory while its GPU runs still answers", async () => {
  const network = makeGpuNetwork();
  const tokenizer = makeTokenizer("abcdefghij");
  let drop = () => {};
  const gpu = {
    run: () => {
      drop();
      return Promise.resolve(null);
    },
  };
  let loaded: LiveModel | undefined = { network, tokenizer, gpu };
  drop = () => (loaded = undefined);
  const routes = makeRoutes({ open: () => Promise.resolve(loaded!), loaded: () => loaded });
  const text = Array.from({ length: 12 }, (_, i) => i % 4);
  expect(await routes["/api/trace"]!({ model: "model", text, edits: [] })).toMatchObject({ ids: text });
});
