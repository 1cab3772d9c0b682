import { expect, test } from "vitest";
import { translate } from "../../src/layout/labPlots";

const HEADINGS = {
  steps: "Schritte",
  "sees both ways": "sieht in beide Richtungen",
  "*, seed *": "*, Durchgang *",
  "cosine (with *)": "Kosinus (mit *)",
};

test("headings that are known are translated, and what stands in them stays or is translated too", () => {
  expect(translate(HEADINGS, "steps")).toBe("Schritte");
  expect(translate(HEADINGS, "LSTM, seed 2")).toBe("LSTM, Durchgang 2");
  expect(translate(HEADINGS, "sees both ways, seed 0")).toBe("sieht in beide Richtungen, Durchgang 0");
  expect(translate(HEADINGS, "cosine (with $& *)")).toBe("Kosinus (mit $& *)");
});

test("what is not known stays as the server says it", () => {
  expect(translate(HEADINGS, "steps of a run")).toBe("steps of a run");
  expect(translate(HEADINGS, "toString")).toBe("toString");
  expect(translate(undefined, "steps")).toBe("steps");
});
