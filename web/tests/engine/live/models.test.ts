import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { LiveModels } from "../../../src/engine/live/models";
import { WasmKernels } from "../../../src/engine/kernels/wasm";
import { openFiles } from "../../../src/engine/weights/files";

const toBytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

function publish() {
  const numbers = new Uint8Array(Float32Array.from({ length: 6 }, (_, i) => i).buffer);
  const sha256 = createHash("sha256").update(numbers).digest("hex");
  const tensors = [{ name: "embedding.weight", shape: [3, 2], type: "float32", start: 0 }];
  const pieces = [{ file: "weights-0.bin", bytes: 24, sha256 }];
  const details = { name: "</script>", path: "my" };
  return {
    "live.json": toBytes({ models: [{ details, folder: "models/0", ends: [2] }] }),
    "models/0/config.json": toBytes({ n_vocab: 3 }),
    "models/0/tokenizer.json": toBytes({ model: {} }),
    "models/0/tokenizer_config.json": toBytes({ eos_token: "." }),
    "models/0/weights.json": toBytes({ format: 1, numbers: "float32", bytes: 24, tensors, pieces }),
    "models/0/weights-0.bin": numbers,
    "models/0/answers.json": toBytes({
      "/api/heads": { kinds: {}, chance: {} },
      "/api/opening": { text: "A" },
    }),
  } as Record<string, Uint8Array<ArrayBuffer>>;
}

function open(files: Record<string, Uint8Array<ArrayBuffer>>) {
  const progress: unknown[] = [];
  const asked: string[] = [];
  const readFile = openFiles({ files });
  const models = new LiveModels(
    (name, onbytes) => {
      asked.push(name);
      return readFile(name, onbytes);
    },
    (message) => progress.push(message),
  );
  const call = (path: string, request: unknown = {}) =>
    models.routes[path]!(request, new AbortController().signal);
  return { models, call, progress, asked };
}

test("lists models without loading them", async () => {
  const { call, asked } = open(publish());
  expect(await call("/api/models")).toEqual({
    models: [{ name: "</script>", path: "my" }],
    can_be_pulled: [],
  });
  expect(asked).toEqual(["live.json"]);
});

test("opens a model once, with progress, in WebAssembly", async () => {
  const { models, call, progress, asked } = open(publish());
  const request = { model: "</script>" };
  const both = await Promise.all([call("/api/open", request), call("/api/open", request)]);
  expect(both).toEqual([both[0], both[0]]);
  expect(both[0]).toMatchObject({ name: "</script>" });
  expect(asked.length).toBe(6);
  expect(progress).toEqual([{ model: "</script>", done: 24, total: 24 }]);
  const { config, tokenizerConfig, ends, weights } = await models.open("</script>");
  expect(config.n_vocab).toBe(3);
  expect([tokenizerConfig, ends]).toEqual([{ eos_token: "." }, [2]]);
  expect(weights.weight("embedding.weight").row(2)).toEqual(new Float32Array([4, 5]));
  expect(weights.kernels).toBeInstanceOf(WasmKernels);
});

test("answers what was computed when the model was published, without its weights", async () => {
  const { call, asked } = open(publish());
  expect(await call("/api/heads", { model: "</script>" })).toEqual({ kinds: {}, chance: {} });
  expect(await call("/api/opening", { model: "</script>" })).toEqual({ text: "A" });
  expect(asked).toEqual(["live.json", "models/0/answers.json"]);
});

test("refuses a model that was not published", async () => {
  await expect(open(publish()).call("/api/open", { model: "other" })).rejects.toMatchObject({
    status: 404,
    code: "model_not_found",
  });
});

test("names a missing or damaged file, and tries again on the next request", async () => {
  const files = publish();
  const { call } = open(files);
  const request = { model: "</script>" };
  const config = files["models/0/config.json"]!;
  delete files["models/0/config.json"];
  await expect(call("/api/open", request)).rejects.toThrow("config.json could not be loaded (it is not in");
  files["models/0/config.json"] = config.slice(0, -2);
  await expect(call("/api/open", request)).rejects.toThrow("config.json is damaged: it is not valid JSON");
  files["models/0/config.json"] = config;
  files["models/0/weights-0.bin"]![3]! ^= 255;
  await expect(call("/api/open", request)).rejects.toThrow("weights-0.bin is damaged: its SHA-256");
  files["models/0/weights-0.bin"]![3]! ^= 255;
  expect(await call("/api/open", request)).toMatchObject({ name: "</script>" });
});
