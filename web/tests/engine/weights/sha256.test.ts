import { createHash } from "node:crypto";
import { afterEach, expect, test, vi } from "vitest";
import { computeSha256, sha256 } from "../../../src/engine/weights/sha256";
import { uniform } from "../../../src/model/random";

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

afterEach(() => vi.unstubAllGlobals());

test("hashes a text of three letters as the standard does", () => {
  const expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  expect(hex(computeSha256(new TextEncoder().encode("abc")))).toBe(expected);
});

test.each([0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 1000, 100_003])("hashes %i bytes", (length) => {
  const bytes = Uint8Array.from(uniform(length, 128, length), (value) => value + 128);
  expect(hex(computeSha256(bytes))).toBe(createHash("sha256").update(bytes).digest("hex"));
});

test("hashes part of a buffer", () => {
  const bytes = Uint8Array.from({ length: 200 }, (_, i) => i);
  const part = bytes.subarray(3, 190);
  expect(hex(computeSha256(part))).toBe(createHash("sha256").update(part).digest("hex"));
});

test("gives the same hash with and without the browser's implementation", async () => {
  const bytes = Uint8Array.from({ length: 77 }, (_, i) => i);
  const expected = createHash("sha256").update(bytes).digest("hex");
  expect(await sha256(bytes)).toBe(expected);
  vi.stubGlobal("crypto", { subtle: undefined });
  expect(await sha256(bytes)).toBe(expected);
  vi.stubGlobal("crypto", undefined);
  expect(await sha256(bytes)).toBe(expected);
});
