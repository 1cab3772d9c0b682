import katex from "katex";
import { describe, expect, test } from "vitest";
import { de } from "../../src/messages/de";
import { en } from "../../src/messages/en";
import { plainProse, splitProse } from "../../src/model/prose";

test("formulas are between dollar signs", () => {
  expect(splitProse("divided by $\\sqrt{d_k}$, then")).toEqual([
    { text: "divided by ", math: false },
    { text: "\\sqrt{d_k}", math: true },
    { text: ", then", math: false },
  ]);
  expect(splitProse("no formula")).toEqual([{ text: "no formula", math: false }]);
});

test("names for screen readers are plain text", () => {
  expect(plainProse("divide by $\\sqrt{d_k}$")).toBe("divide by √d_k");
});

test("roots in the server's texts are typeset", () => {
  expect(splitProse("Why divide by √d_k, or √d?").filter(({ math }) => math)).toEqual([
    { text: "\\sqrt{d_k}", math: true },
    { text: "\\sqrt{d}", math: true },
  ]);
});

/** Every text of a language, with numbers and words in place of the arguments. */
function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value === "function") {
    try {
      return textsOf(value("1.00", "2", "3", "4"));
    } catch {
      return []; // takes lists
    }
  }
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

describe.each([
  ["English", en],
  ["German", de],
])("in %s", (_, words) => {
  const fragments = textsOf(words).flatMap(splitProse);

  test("every formula is valid", () => {
    const formulas = fragments.filter(({ math }) => math);
    expect(formulas.length).toBeGreaterThan(5);
    for (const { text } of formulas)
      expect(katex.renderToString(text, { throwOnError: true, strict: "error" })).toContain("katex-html");
  });
  test("no formula is written as plain text", () => {
    const plain = fragments.filter(({ text, math }) => !math && /[A-Za-z][_^][A-Za-z]|√|ᵀ|‖/.test(text));
    expect(plain).toEqual([]);
  });
});
