/** The page's whole state as an address: what is shared, linked, reloaded and gone back to. */

import type { Axis } from "../layout/curves";
import { type Order, ORDERS } from "../model/headKinds";
import { PLAIN, type Sampling } from "../model/sampling";
import { readPath, writePath } from "../model/attributionPath";
import type { Edit, Hop } from "../engine/client";
import { readExample, type TinyExample } from "../model/tinyHead";
import { PARTS, type PartName, type StepName, STEPS } from "../model/steps";

/** What is shown below the flow. */
export const VIEWS = [
  "steps",
  "compare",
  "change",
  "why",
  "lens",
  "words",
  "tiny",
  "labs",
  "training",
] as const;
export type ViewName = (typeof VIEWS)[number];

export interface Place {
  view: ViewName;
  model: string; // "" takes the first there is
  text: string;
  block: number;
  head: number;
  part: PartName;
  step: number | StepName; // by its name in an address: other models have other steps
  site: number; // which of the step's sites
  row: number; // the token that is followed; -1 is the last
  column: number; // -1 where none is chosen
  sampling: Sampling;
  edits: Edit[];
  other: string; // another text, held beside it
  otherModel: string; // that it goes through; the same unless said
  path: Hop[]; // the way back from that word, through heads
  word: number; // the next word that is asked about, by its id; -1 is the likeliest
  order: Order; // of the heads' small pictures
  only: boolean; // those that do what they are ordered by
  runs: string[]; // whose curves are drawn; where none is named, one that fits
  axis: Axis; // of their steps
  lab: string; // "" is the first
  settings: Settings; // of that lab, where they are not as usual
  typed: Typed; // into the view of words
  over: "head" | "position"; // what the map of effects is of
  taken: boolean; // from the other text, instead of silenced
  alone: boolean; // the lens shows one word's probability
  filter: string; // of the sites that are compared
  tiny: TinyExample | null; // the tiny head as it was changed
}

/** What is typed into the view of words, where it is not the example. */
export interface Typed {
  word?: string;
  sentences?: string;
  stage?: number; // none is the last
  start?: string; // of a direction
  end?: string;
}

export type Settings = Record<string, string | number | boolean>;

export const START: Place = {
  view: "steps",
  model: "",
  text: "",
  block: 0,
  head: 0,
  part: "head",
  step: 0,
  site: 0,
  row: -1,
  column: -1,
  sampling: PLAIN,
  edits: [],
  other: "",
  otherModel: "",
  path: [],
  word: -1,
  order: "block",
  only: false,
  runs: [],
  axis: "linear",
  lab: "",
  settings: {},
  typed: {},
  tiny: null,
  over: "head",
  taken: false,
  alone: false,
  filter: "",
};

const NUMBERS = ["block", "head", "step", "site", "row", "column", "word"] as const;
const SWITCHES = ["only", "taken", "alone"] as const;
const RULES = { temperature: [0, 5], topK: [0, 100_000], topP: [0.01, 1], minP: [0, 1] } as const;

/** Only what is not as it is at the start. */
export function toQuery(place: Place): string {
  const query = new URLSearchParams();
  const put = (name: string, value: string | number, usual: string | number) => {
    if (value !== usual) query.set(name, String(value));
  };
  put("model", place.model, START.model);
  put("text", place.text, START.text);
  put("view", place.view, START.view);
  put("other", place.other, START.other);
  put("otherModel", place.otherModel, START.otherModel);
  put("part", place.part, START.part);
  put("order", place.order, START.order);
  put("runs", place.runs.join(","), START.runs.join(","));
  put("axis", place.axis, START.axis);
  put("lab", place.lab, START.lab);
  for (const name of ["settings", "typed"] as const)
    if (Object.keys(place[name]).length > 0) query.set(name, JSON.stringify(place[name]));
  if (place.tiny !== null) query.set("tiny", JSON.stringify(place.tiny));
  put("over", place.over, START.over);
  put("filter", place.filter, START.filter);
  for (const name of SWITCHES) if (place[name]) query.set(name, "yes");
  for (const name of NUMBERS) put(name, place[name], START[name]);
  for (const name of Object.keys(RULES) as (keyof Sampling)[]) put(name, place.sampling[name], PLAIN[name]);
  put("path", writePath(place.path), "");
  if (place.edits.length > 0) query.set("edits", JSON.stringify(place.edits));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** What an address says; what is wrong in it is as at the start. */
export function fromQuery(text: string): Place {
  const query = new URLSearchParams(text);
  const number = (name: string, least: number, most: number, usual: number) => {
    const given = query.get(name);
    const value = given === null || given.trim() === "" ? NaN : Number(given);
    return value >= least && value <= most ? value : usual;
  };
  const whole = (name: (typeof NUMBERS)[number]) => {
    const usual = START[name] as number;
    const value = number(name, -1, 1e6, usual);
    return Number.isInteger(value) ? value : usual;
  };
  const part = query.get("part") as PartName;
  const step = query.get("step") as StepName;
  const view = query.get("view") as ViewName;
  const order = query.get("order") as Order;
  const sampling = { ...PLAIN };
  for (const [name, [least, most]] of Object.entries(RULES) as [keyof Sampling, [number, number]][]) {
    sampling[name] = number(name, least, most, PLAIN[name]);
  }
  sampling.topK = Math.round(sampling.topK);
  return {
    view: VIEWS.includes(view) ? view : START.view,
    model: query.get("model") ?? START.model,
    text: query.get("text") ?? START.text,
    part: PARTS.includes(part) ? part : START.part,
    block: Math.max(0, whole("block")),
    head: Math.max(0, whole("head")),
    step: STEPS.includes(step) ? step : Math.max(0, whole("step")),
    site: Math.max(0, whole("site")),
    row: whole("row"),
    column: whole("column"),
    word: whole("word"),
    path: readPath(query.get("path")),
    other: query.get("other") ?? START.other,
    otherModel: query.get("otherModel") ?? START.otherModel,
    sampling,
    edits: readEdits(query.get("edits")),
    order: ORDERS.includes(order) ? order : START.order,
    only: query.get("only") === "yes",
    taken: query.get("taken") === "yes",
    alone: query.get("alone") === "yes",
    over: query.get("over") === "position" ? "position" : START.over,
    filter: query.get("filter") ?? START.filter,
    runs: (query.get("runs") ?? "").split(",").filter((name) => name !== ""),
    axis: query.get("axis") === "log" ? "log" : START.axis,
    lab: query.get("lab") ?? START.lab,
    settings: readPlain(query.get("settings")),
    typed: readTyped(query.get("typed")),
    tiny: readExample(readJson(query.get("tiny"))),
  };
}

function readJson(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** Names with texts, numbers, or true and false. */
function readPlain(text: string | null): Settings {
  const found = readJson(text);
  if (typeof found !== "object" || found === null || Array.isArray(found)) return {};
  const plain = (value: unknown) => ["string", "number", "boolean"].includes(typeof value);
  return Object.fromEntries(Object.entries(found).filter(([, value]) => plain(value)));
}

function readTyped(text: string | null): Typed {
  const { stage, ...texts } = readPlain(text);
  const names = ["word", "sentences", "start", "end"] as const;
  const typed = Object.fromEntries(
    names.filter((name) => typeof texts[name] === "string").map((name) => [name, texts[name]]),
  );
  return { ...typed, ...(Number.isInteger(stage) && { stage: stage as number }) };
}

function readEdits(text: string | null): Edit[] {
  const edits = readJson(text);
  const isEdit = (each: unknown) => typeof (each as Edit | null)?.site === "string";
  return Array.isArray(edits) && edits.every(isEdit) ? (edits as Edit[]) : [];
}
