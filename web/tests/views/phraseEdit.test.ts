import { afterEach, expect, test } from "vitest";
import { de } from "../../src/messages/de";
import { en } from "../../src/messages/en";
import { locale } from "../../src/messages/format.svelte";
import { phraseEdit } from "../../src/views/prediction/phraseEdit";

afterEach(() => {
  locale.language = "en";
});

const TOKENS = ["The", " duck", " sat"];

test("names the part, the tokens and what was done", () => {
  const phrase = (edit: Parameters<typeof phraseEdit>[1]) => phraseEdit(en, edit, TOKENS);
  expect(phrase({ site: "block.1.head.0.output", value: 0 })).toBe("head 1.0: ablated");
  expect(phrase({ site: "block.1.input", at: [-1], scale: 2 })).toBe(
    "residual stream of “␣sat” entering block 1: × 2.00",
  );
  expect(phrase({ site: "block.0.hidden", columns: [7], value: 0 })).toBe("neuron 7 of block 0: ablated");
  expect(phrase({ site: "block.0.head.1.weights", at: [1], value: [[1, 0]] })).toBe(
    "attention weights of “␣duck” in head 0.1: set to “The” 100%",
  );
  expect(phrase({ site: "final", value: 1 })).toBe("final: set to 1.00");
  expect(phrase({ site: "final", value: [1, -2, 3] })).toBe("final: set to [1.00, −2.00, 3.00]");
  expect(phrase({ site: "final", value: [[1, 2, 3, 4]] })).toBe("final: set to [1.00, 2.00, 3.00] …");
});

test("names the largest attention weights that were set", () => {
  const edit = { site: "block.0.head.1.weights", at: [2], value: [[0.125, 0.75, 0.0625]] };
  expect(phraseEdit(en, edit, TOKENS)).toBe(
    "attention weights of “␣sat” in head 0.1: set to “␣duck” 75%, “The” 13%",
  );
  locale.language = "de";
  expect(phraseEdit(de, edit, TOKENS)).toContain("auf „␣duck“ 75\u202f%, „The“ 13\u202f% gesetzt");
});

test("names the text that an activation was patched from", () => {
  const phrase = (text: string) => phraseEdit(en, { site: "block.1.head.0.output", text }, TOKENS);
  expect(phrase("A cat sat")).toBe("head 1.0: patched from “A cat sat”");
  expect(phrase("a".repeat(70))).toBe(`head 1.0: patched from “${"a".repeat(59)}…”`);
});

test("phrases an edit in German", () => {
  expect(phraseEdit(de, { site: "block.1.head.0.output", value: 0 }, TOKENS)).toContain("1.0");
});
