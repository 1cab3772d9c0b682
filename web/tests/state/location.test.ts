import { EXAMPLES } from "../../src/model/tinyHead";
import { expect, test } from "vitest";
import {
  fromQuery,
  invalidParameters,
  type PageLocation,
  START_LOCATION,
  toQuery,
} from "../../src/state/location";

const LOCATION: PageLocation = {
  view: "tiny",
  model: "smollm2",
  text: "Was ist „das“? 1+1=2 & more\n",
  block: 13,
  head: 8,
  part: "feedforward",
  step: 2,
  site: 1,
  matrix: "map",
  row: 4,
  column: 2,
  open: [
    { name: "block.2.head.1.weights", row: 3, column: 1 },
    { name: "block.2.head.1.weighed", row: 1, column: 0, query: 3 },
  ],
  sampling: { temperature: 0.7, topK: 40, topP: 0.9, minP: 0.05 },
  edits: [{ site: "block.0.head.1.output", value: 0 }],
  other: "Was?",
  otherModel: "my",
  target: 7,
  against: 9,
  path: [
    { block: 12, head: 3, source: 4 },
    { block: 2, head: 0, source: 0 },
  ],
  order: "induction",
  byQuery: true,
  only: true,
  runs: ["my", "other-2"],
  axis: "log",
  lab: "scale",
  lesson: "step",
  taken: 4,
  lessonStep: 2,
  gradient: "block.1.head.0.W_Q",
  interval: 2,
  chain: [
    { name: "logits", row: 2, column: 7 },
    { name: "final", row: 2, column: 1 },
  ],
  stop: "001.4",
  presenting: true,
  over: "position",
  patched: true,
  alone: true,
  filter: "value",
  settings: { words: 8, base: "3", shown: true },
  typed: { word: "bank", sentences: "a bank\nthe bank", stage: 2, start: " a" },
  tiny: {
    ...EXAMPLES.own,
    W_V: [
      [1, 2],
      [3, -4.5],
    ],
    causal: true,
  },
};

test("the tiny head's numbers are in the address of its own view only", () => {
  expect(toQuery(LOCATION)).toContain("tiny=");
  expect(toQuery({ ...LOCATION, view: "steps" })).not.toContain("tiny=");
});

test("round-trips through the address", () => {
  expect(fromQuery(toQuery(LOCATION))).toEqual(LOCATION);
  expect(fromQuery(toQuery(START_LOCATION))).toEqual(START_LOCATION);
  expect(toQuery(START_LOCATION)).toBe("");
});

test.each([
  "?block=-3&head=x&step=1.5&row=1e99&temperature=-1&topP=0&part=__proto__&edits={",
  "?block=&head=NaN&edits=[1]&topK=Infinity",
  "?edits=null&part=toString&path=1.2.3-4.5.6&view=valueOf&order=constructor&only=1&matrix=table",
])("ignores invalid values in %s", (query) => expect(fromQuery(query)).toEqual(START_LOCATION));

test("ignores invalid JSON in the address", () => {
  for (const wrong of ["", "1", "[]", "{", '{"sequence":"01","W_Q":[[1]]}', '{"stage":"two","word":3}']) {
    const { typed, tiny, settings } = fromQuery(
      `?${new URLSearchParams({ typed: wrong, tiny: wrong, settings: wrong })}`,
    );
    expect(typed).toEqual({});
    expect(tiny).toBeNull();
    expect(Object.values(settings).every((value) => typeof value !== "object")).toBe(true);
  }
});

test("names the parameters that are invalid", () => {
  expect(invalidParameters("?block=-1&head=x&step=7&edits=[{&text=a&token=secret&row=-1&part=head")).toEqual([
    "block",
    "head",
    "edits",
  ]);
  expect(invalidParameters("?view=nowhere&temperature=99&settings=1")).toEqual([
    "view",
    "temperature",
    "settings",
  ]);
  expect(invalidParameters("?view=lectures&stop=001.10")).toEqual(["stop"]);
  expect(invalidParameters("?view=learning&lesson=step&taken=21&gradient=a-b")).toEqual([
    "taken",
    "gradient",
  ]);
  expect(invalidParameters("?view=lectures&stop=001.9")).toEqual([]);
  expect(invalidParameters(toQuery({ ...START_LOCATION, text: "a", block: 2, only: true }))).toEqual([]);
});
