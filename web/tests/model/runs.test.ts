import { expect, test } from "vitest";
import type { Run } from "../../src/engine/types";
import {
  isActive,
  isShortTime,
  isSnapshot,
  isTooShort,
  listSnapshots,
  measuredRun,
  runName,
  trainedNow,
  uniqueName,
} from "../../src/model/runs";

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

test("a run limited by time is too short if it took only a few steps", () => {
  const run = { state: "finished", minutes: 0.33, steps_done: 1 } as Run;
  expect(isTooShort(run)).toBe(true);
  expect(isTooShort({ ...run, steps_done: 200 })).toBe(false);
  expect(isTooShort({ ...run, minutes: null })).toBe(false);
  expect(isTooShort({ ...run, state: "running" })).toBe(false);
  expect([isShortTime(0.3), isShortTime(1), isShortTime(null)]).toEqual([true, false, false]);
});

test("the shortest finished run shows what the computer can do", () => {
  const runs = [
    { name: "long", state: "finished", minutes: 3, steps_done: 900 },
    { name: "short", state: "finished", minutes: 1, steps_done: 200 },
    { name: "by steps", state: "finished", minutes: null, steps_done: 10 },
    { name: "now", state: "running", minutes: 0.5, steps_done: 10 },
    { name: "teacher", state: "finished", minutes: 0.2, steps_done: 60, teachers: 2, teacher: 1 },
  ] as Run[];
  expect(measuredRun(runs)?.name).toBe("short");
  expect(measuredRun([])).toBeUndefined();
});

test("while a run's teachers are trained, one of them is shown", () => {
  const [student, first, second] = [
    { name: "my", state: "starting", student: null, teachers: 2, teacher: null },
    { name: "my-teacher-1", state: "finished", student: "my", teachers: 2, teacher: 1 },
    { name: "my-teacher-2", state: "running", student: "my", teachers: 2, teacher: 2 },
  ] as [Run, Run, Run];
  expect(trainedNow(student, [student, first, second])).toBe(second);
  expect(trainedNow(student, [student, first])).toBe(student);
  expect(trainedNow({ ...student, state: "running" }, [student, first, second]).name).toBe("my");
});
