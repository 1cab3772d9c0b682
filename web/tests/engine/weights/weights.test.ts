import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { ReferenceKernels } from "../../../src/engine/kernels/reference";
import { type WeightIndex, Weights } from "../../../src/engine/weights/weights";
import { uniform } from "../../../src/model/random";

const EMBEDDING = Float32Array.from(uniform(7 * 5, 1, 1));
const GAIN = Float32Array.from(uniform(5, 1, 2));
const CODES = Int8Array.from(uniform(3 * 5, 127, 3));
const SCALES = Float32Array.from([0.5, 0.25, 2]);

/** A stream of three tensors, in pieces of `pieceSize` bytes. */
function publish(pieceSize: number) {
  const parts = [EMBEDDING, GAIN, CODES, SCALES].map((each) => Buffer.from(each.buffer));
  const stream = Buffer.concat(parts);
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  const pieces: WeightIndex["pieces"] = [];
  for (let start = 0; start < stream.length; start += pieceSize) {
    const bytes = new Uint8Array(stream.subarray(start, start + pieceSize));
    const file = `weights-${pieces.length}.bin`;
    files.set(file, bytes);
    pieces.push({ file, bytes: bytes.length, sha256: createHash("sha256").update(bytes).digest("hex") });
  }
  const index: WeightIndex = {
    format: 1,
    numbers: "int8",
    bytes: stream.length,
    tensors: [
      { name: "embedding.weight", shape: [7, 5], type: "float32", start: 0 },
      { name: "norm.gain", shape: [5], type: "float32", start: 140 },
      { name: "query.weight", shape: [3, 5], type: "int8", start: 160, scales: 175 },
    ],
    pieces,
  };
  const asked: string[] = [];
  const read = (file: string, onbytes?: (done: number) => void) => {
    asked.push(file);
    const bytes = files.get(file);
    if (!bytes) return Promise.reject(new Error("404"));
    onbytes?.(Math.floor(bytes.length / 2));
    onbytes?.(bytes.length);
    return Promise.resolve(bytes);
  };
  return { index, files, read, asked };
}

test.each([1, 7, 64, 1000])("fills every tensor from pieces of %i bytes", async (pieceSize) => {
  const { index, read } = publish(pieceSize);
  const weights = await Weights.load(index, new ReferenceKernels(), read);
  const embedding = weights.weight("embedding.weight");
  expect([embedding.rows, embedding.columns]).toEqual([7, 5]);
  for (let i = 0; i < 7; i++) expect(embedding.row(i)).toEqual(EMBEDDING.slice(5 * i, 5 * i + 5));
  expect(weights.vector("norm.gain")).toEqual(GAIN);
  const query = weights.weight("query.weight");
  expect(query.row(2)).toEqual(Float32Array.from(CODES.slice(10), (code) => 2 * code));
});

test("a tied unembedding is the embedding", async () => {
  const { index, read } = publish(64);
  const weights = await Weights.load(index, new ReferenceKernels(), read);
  expect(weights.weight("unembedding.weight")).toBe(weights.weight("embedding.weight"));
  expect(weights.has("unembedding.weight")).toBe(false);
  expect(() => weights.weight("key.weight")).toThrow("no matrix key.weight");
});

test("reports the bytes that have arrived, and asks for a few pieces at a time", async () => {
  const { index, read, asked } = publish(30);
  const seen: number[] = [];
  const loading = Weights.load(index, new ReferenceKernels(), read, (done, total) => {
    expect(total).toBe(187);
    seen.push(done);
  });
  expect(asked.length).toBe(3);
  await loading;
  expect(asked).toEqual(index.pieces.map(({ file }) => file));
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(seen.at(-1)).toBe(187);
});

test("names a file that was changed", async () => {
  const { index, read, files } = publish(64);
  files.get("weights-1.bin")![5]! ^= 1;
  const loading = Weights.load(index, new ReferenceKernels(), read);
  await expect(loading).rejects.toMatchObject({ code: "weights_damaged", values: { file: "weights-1.bin" } });
  await expect(loading).rejects.toThrow("weights-1.bin is damaged: it is not the file that was published");
});

test("names a file that was truncated", async () => {
  const { index, read, files } = publish(64);
  files.set("weights-2.bin", files.get("weights-2.bin")!.slice(0, -3));
  const loading = Weights.load(index, new ReferenceKernels(), read);
  await expect(loading).rejects.toThrow("weights-2.bin is damaged: it has 56 bytes, expected 59");
});

test("names a file that is missing", async () => {
  const { index, read, files } = publish(20);
  files.delete("weights-1.bin");
  files.delete("weights-2.bin");
  const loading = Weights.load(index, new ReferenceKernels(), read);
  await expect(loading).rejects.toThrow("weights-1.bin could not be loaded (404)");
});

test.each([
  [{ format: 2 }, "its format is 2, expected 1"],
  [{ bytes: 200 }, "its pieces have 187 bytes and its tensors 187, expected 200"],
])("refuses an index that does not add up: %o", async (change, message) => {
  const { index, read } = publish(64);
  const loading = Weights.load({ ...index, ...change }, new ReferenceKernels(), read);
  await expect(loading).rejects.toThrow(`weights.json is damaged: ${message}`);
});

test("says how much memory a model needs if there is not enough", async () => {
  const { index, read } = publish(64);
  const kernels = new ReferenceKernels();
  kernels.allocate = () => {
    throw new RangeError("WebAssembly.Memory.grow(): Unable to grow instance memory");
  };
  const loading = Weights.load(index, kernels, read);
  await expect(loading).rejects.toMatchObject({ code: "no_memory", values: { megabytes: 1 } });
});
