import { expect, test } from "vitest";
import { VIEWS } from "../../src/state/location";
import { canSave, fileName, isReachable } from "../../src/views/share";

test("a file is named after the model and the first words", () => {
  expect(fileName("stories", "Ella lived near the village. She had a trumpet")).toBe(
    "stories-Ella-lived-near-the-village.-She.html",
  );
  expect(fileName("my@30", ' "Ä/ö?" ')).toBe("my-30-Ä-ö.html");
  expect(fileName("my", "")).toBe("my.html");
});

test("a loopback address is not reachable from other computers", () => {
  expect(["127.0.0.1", "localhost", "[::1]", ""].map(isReachable)).toEqual([false, false, false, false]);
  expect(isReachable("10.0.0.7")).toBe(true);
});

test("only views that need a server cannot be saved", () => {
  expect(VIEWS.filter((view) => !canSave(view))).toEqual(["learning", "labs", "training", "report"]);
});
