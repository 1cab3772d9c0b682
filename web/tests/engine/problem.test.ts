import { expect, test } from "vitest";
import { LANGUAGES } from "../../src/messages/languages";
import { toProblem, describeProblem } from "../../src/engine/problem";
import { ApiError } from "../../src/engine/client";

const { de, en } = LANGUAGES as { de: (typeof LANGUAGES)[string]; en: (typeof LANGUAGES)[string] };

test("translates an error by its code, and uses the server's message in English", () => {
  const values = { count: 5000, most: 4096 };
  const error = new ApiError(400, "the text has 5000 tokens", "too_many_tokens", values);
  expect(describeProblem(de, toProblem(error))).toBe(
    "Das sind 5.000 Tokens; erlaubt sind hier höchstens 4.096.",
  );
  expect(describeProblem(en, toProblem(error))).toBe("the text has 5000 tokens");
});

test("uses the server's message if there is no translation", () => {
  expect(describeProblem(de, new ApiError(400, "a new thing", "a_new_code"))).toBe("a new thing");
  expect(describeProblem(de, toProblem(new TypeError("null has no x")))).toBe("null has no x");
  expect(describeProblem(de, { message: "it ended without a word", code: null })).toBe(
    "it ended without a word",
  );
});

test.each([
  ["position", 9, 4, "Position 9 gibt es nicht: Möglich sind die Positionen 0 bis 4."],
  ["wheel", 9, 4, "wheel 9 gibt es nicht: Möglich sind wheel 0 bis 4."],
])("names a %s that does not exist", (what, number, last, said) => {
  expect(describeProblem(de, { message: "", code: "no_such_number", values: { what, number, last } })).toBe(
    said,
  );
});
