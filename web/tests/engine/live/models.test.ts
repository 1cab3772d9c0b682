import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { LiveModels } from "../../../src/engine/live/models";
import { WasmKernels } from "../../../src/engine/kernels/wasm";
import { openFiles } from "../../../src/engine/weights/files";

const toBytes = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));

/** A model without blocks: an embedding of three tokens, and a norm. */
function publish() {
  const numbers = new Uint8Array(Float32Array.of(0, 1, 2, 3, 4, 5, 1, 1).buffer);
  const sha256 = createHash("sha256").update(numbers).digest("hex");
  const tensors = [
    { name: "embedding.weight", shape: [3, 2], type: "float32", start: 0 },
    { name: "final_norm.gain", shape: [2], type: "float32", start: 24 },
  ];
  const pieces = [{ file: "weights-0.bin", bytes: 32, sha256 }];
  const details = { name: "</script>", path: "my" };
  const config = { n_vocab: 3, n_context: 8, n_block: 0, d_model: 2, norm: "rms", norm_epsilon: 1e-6 };
  const vocab = { a: 0, b: 1, end: 2 };
  return {
    "live.json": toBytes({
      models: [
        { details, folder: "model-0", ends: [2], answers: { "/api/opening": { text: "a" } }, sha256: {} },
      ],
      labs: true,
    }),
    "labs.json": toBytes({ labs: [{ name: "scale" }], results: [{ lab: "scale", title: "Scale" }] }),
    "model-0/config.json": toBytes({ ...config, position: "none", embedding_scale: 1, local_blocks: [] }),
    "model-0/tokenizer.json": toBytes({
      model: { type: "WordLevel", vocab, unk_token: "a" },
      pre_tokenizer: { type: "WhitespaceSplit" },
    }),
    "model-0/tokenizer_config.json": toBytes({ eos_token: "end" }),
    "model-0/weights.json": toBytes({ format: 1, numbers: "float32", bytes: 32, tensors, pieces }),
    "model-0/weights-0.bin": numbers,
  } as Record<string, Uint8Array<ArrayBuffer>>;
}

function open(files: Record<string, Uint8Array<ArrayBuffer>>, keptBytes?: number) {
  const progress: unknown[] = [];
  const asked: string[] = [];
  const readFile = openFiles({ files });
  const models = new LiveModels(
    (name, onbytes) => {
      asked.push(name);
      return readFile(name, onbytes);
    },
    (message) => progress.push(message),
    undefined,
    keptBytes,
  );
  const call = (path: string, request: unknown = {}) =>
    models.routes[path]!(request, new AbortController().signal);
  return { models, call, progress, asked };
}

test("lists models without loading them", async () => {
  const { call, asked } = open(publish());
  expect(await call("/api/models")).toEqual({
    models: [{ name: "</script>", path: "my", state: "not loaded" }],
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
  expect(progress).toEqual([{ model: "</script>", done: 32, total: 32 }]);
  const { network, tokenizer } = await models.open("</script>");
  expect(network.config.n_vocab).toBe(3);
  expect(network.unembedding.kernels).toBeInstanceOf(WasmKernels);
  expect(tokenizer.encode("b a")).toEqual([1, 0]);
});

test("drops the least recently used models, but never the last two", async () => {
  const files = publish();
  const entry = { folder: "model-0", ends: [2], answers: {}, sha256: {} };
  files["live.json"] = toBytes({ models: ["a", "b", "c"].map((name) => ({ ...entry, details: { name } })) });
  const { models, asked } = open(files, 40); // each has 32 bytes
  const loads = async (name: string) => {
    const before = asked.length;
    await models.open(name);
    await new Promise((resolve) => setTimeout(resolve)); // models are dropped later
    return asked.length > before;
  };
  expect(await loads("a")).toBe(true);
  expect(await loads("b")).toBe(true);
  expect(await loads("a")).toBe(false);
  expect(await loads("c")).toBe(true); // in place of b
  expect(await loads("a")).toBe(false);
  expect(await loads("b")).toBe(true); // in place of c
  expect(await loads("a")).toBe(false);
});

test("names a file that is not the published one", async () => {
  const files = publish();
  const index = JSON.parse(new TextDecoder().decode(files["live.json"])) as { models: { sha256: object }[] };
  index.models[0]!.sha256 = { "tokenizer.json": "0".repeat(64) };
  files["live.json"] = toBytes(index);
  const { call, progress } = open(files);
  const opening = call("/api/open", { model: "</script>" });
  await expect(opening).rejects.toThrow("tokenizer.json is damaged: it is not the file that was published");
  expect(progress.at(-1)).toEqual({ model: "</script>", done: 0, total: 0 });
});

test("answers with what was recorded, without loading the model", async () => {
  const { call, asked } = open(publish());
  expect(await call("/api/opening", { model: "</script>" })).toEqual({ text: "a" });
  expect(asked).toEqual(["live.json"]);
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
  const config = files["model-0/config.json"]!;
  delete files["model-0/config.json"];
  await expect(call("/api/open", request)).rejects.toThrow("config.json could not be loaded (it is not in");
  files["model-0/config.json"] = config.slice(0, -2);
  await expect(call("/api/open", request)).rejects.toThrow("config.json is damaged: it is not valid JSON");
  files["model-0/config.json"] = config;
  files["model-0/weights-0.bin"]![3]! ^= 255;
  await expect(call("/api/open", request)).rejects.toThrow("weights-0.bin is damaged: it is not the file");
  files["model-0/weights-0.bin"]![3]! ^= 255;
  expect(await call("/api/open", request)).toMatchObject({ name: "</script>" });
});

test("says that a model that was never loaded needs the network once", async () => {
  const files = publish();
  const readFile = openFiles({ files });
  const models = new LiveModels(
    (name, onbytes) =>
      name.startsWith("model-0/")
        ? Promise.reject(new TypeError("Failed to fetch"))
        : readFile(name, onbytes),
    () => undefined,
  );
  await expect(models.open("</script>")).rejects.toMatchObject({
    code: "model_not_stored",
    message:
      "</script> has not been loaded in this browser yet: loading it the first time requires a network connection",
  });
});
