import { expect, test } from "vitest";
import { rowName, translateHeading } from "../../src/layout/labPlots";

const HEADINGS = {
  steps: "Schritte",
  bidirectional: "bidirektional",
  "*, seed *": "*, Durchgang *",
  "cosine (with *)": "Kosinus (mit *)",
};

test("translates known headings and the parts in them", () => {
  expect(translateHeading(HEADINGS, "steps")).toBe("Schritte");
  expect(translateHeading(HEADINGS, "LSTM, seed 2")).toBe("LSTM, Durchgang 2");
  expect(translateHeading(HEADINGS, "bidirectional, seed 0")).toBe("bidirektional, Durchgang 0");
  expect(translateHeading(HEADINGS, "cosine (with $& *)")).toBe("Kosinus (mit $& *)");
});

test("leaves unknown headings as they are", () => {
  expect(translateHeading(HEADINGS, "steps of a run")).toBe("steps of a run");
  expect(translateHeading(HEADINGS, "toString")).toBe("toString");
  expect(translateHeading(undefined, "steps")).toBe("steps");
});

test.each([
  ["' her'", "␣her"],
  [`" 'll"`, "␣'ll"],
  ["7  girl", "7 ␣girl"],
  ["8 ,", "8 ,"],
  ["0 at 0", "0 at 0"],
  ["score", "score"],
])("shows the row %s as %s", (name, shown) => expect(rowName(name)).toBe(shown));
