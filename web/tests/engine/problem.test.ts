import { expect, test } from "vitest";
import { LANGUAGES } from "../../src/messages/languages";
import { problemOf, tell } from "../../src/engine/problem";
import { ServerError } from "../../src/engine/client";

const { de, en } = LANGUAGES as { de: (typeof LANGUAGES)[string]; en: (typeof LANGUAGES)[string] };

test("what the server refuses is said in German by its code, in English by itself", () => {
  const values = { count: 5000, most: 4096 };
  const error = new ServerError(400, "the text has 5000 tokens", "too_many_tokens", values);
  expect(tell(de, problemOf(error))).toBe("Das sind 5.000 Token; hier gehen höchstens 4.096.");
  expect(tell(en, problemOf(error))).toBe("the text has 5000 tokens");
});

test("what the page has no words for is said as the server says it", () => {
  expect(tell(de, new ServerError(400, "a new thing", "a_new_code"))).toBe("a new thing");
  expect(tell(de, problemOf(new TypeError("null has no x")))).toBe("null has no x");
  expect(tell(de, { message: "it ended without a word", code: null })).toBe("it ended without a word");
});

test.each([
  ["position", 9, 4, "Eine Stelle 9 gibt es nicht: Es gibt Stellen 0 bis 4."],
  ["wheel", 9, 4, "wheel 9 gibt es nicht: Es gibt wheel 0 bis 4."],
])("a %s that there is not", (what, number, last, said) => {
  expect(tell(de, { message: "", code: "no_such_number", values: { what, number, last } })).toBe(said);
});
