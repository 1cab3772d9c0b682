import { expect, test } from "vitest";
import { uniqueName, isSnapshot, listSnapshots, runName, isActive } from "../../src/model/runs";

test("splits the name of a snapshot", () => {
  expect([isSnapshot("my@12"), isSnapshot("my"), isSnapshot("my@x"), isSnapshot("@1")]).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect([runName("my@12"), runName("my")]).toEqual(["my", "my"]);
});

test("lists the snapshots and the final model", () => {
  const run = { name: "my", snapshots: [1, 5, 30], steps_done: 30, model: "my-2", state: "finished" };
  expect(listSnapshots(run)).toEqual([
    { step: 1, model: "my@1" },
    { step: 5, model: "my@5" },
    { step: 30, model: "my-2" },
  ]);
  expect(listSnapshots({ ...run, steps_done: 40 }).map(({ model }) => model)).toEqual([
    "my@1",
    "my@5",
    "my@30",
    "my-2",
  ]);
  expect(listSnapshots({ ...run, state: "running" }).map(({ model }) => model)).toEqual([
    "my@1",
    "my@5",
    "my@30",
  ]);
  expect(listSnapshots({ ...run, model: null, snapshots: [] })).toEqual([]);
});

test("finds a unique name that the server accepts", () => {
  expect(uniqueName("My tales (2)", [])).toBe("My-tales-2");
  expect(uniqueName("my", ["my", "my-2"])).toBe("my-3");
  expect(uniqueName("…", [])).toBe("run");
  expect(uniqueName("--out", [])).toBe("out");
  expect(uniqueName("ü".repeat(80), [])).toBe("run");
  expect(uniqueName("a".repeat(80), []).length).toBeLessThan(64);
});

test("a run is active from the start until it is saved", () => {
  const states = ["starting", "running", "stopping", "stopped", "finished", "failed"] as const;
  expect(states.filter((state) => isActive({ state }))).toEqual(["starting", "running", "stopping"]);
});
