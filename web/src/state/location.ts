/** The state of the page that its address holds: links, reloads and the back button restore it. */

import type { Axis } from "../layout/curves";
import { type HeadOrder, HEAD_ORDERS } from "../model/headKinds";
import { DEFAULT_SAMPLING, type Sampling } from "../model/sampling";
import { parsePath, formatPath } from "../model/attributionPath";
import type { Edit, Hop } from "../engine/types";
import { isStop } from "../lectures/lectures";
import { parseExample, type TinyExample } from "../model/tinyHead";
import type { Cell } from "../model/sites";
import { PARTS, type PartName, type StepName, STEPS } from "../model/steps";

export const VIEWS = [
  "steps",
  "heads",
  "compare",
  "change",
  "why",
  "lens",
  "words",
  "learning",
  "lectures",
  "tiny",
  "labs",
  "training",
  "report",
] as const;
export type ViewName = (typeof VIEWS)[number];
/** The views that are not about the text. */
export const WITHOUT_TEXT: readonly ViewName[] = ["lectures", "tiny", "labs", "training", "report"];

export const MOST_STEPS = 20; // the server's limit
/** The parts of the learning view. */
export const LESSON_PARTS = ["gradient", "step", "run"] as const;
export type LessonPart = (typeof LESSON_PARTS)[number];

/** How a matrix is shown. */
export type MatrixMode = "numbers" | "map";

/** A number that was opened. */
export interface OpenCell extends Cell {
  query?: number; // for a weighted value: the token that attends to `row`
}

export interface PageLocation {
  view: ViewName;
  model: string; // "" for the first one
  text: string | null; // null until one is chosen
  block: number;
  head: number;
  part: PartName;
  step: number | StepName; // by name in the address: other models have other steps
  site: number; // index into the step's sites
  matrix: MatrixMode | null; // null for the usual one of a text of this length
  row: number; // the selected token; -1 for the last
  column: number; // -1 for none
  open: OpenCell[]; // the open numbers, each opened from the one before; the last one is explained
  sampling: Sampling;
  edits: Edit[];
  other: string; // the text to compare with
  otherModel: string; // the model to compare with; "" for the same model
  path: Hop[]; // hops through heads, back from the predicted token
  target: number; // id of the next token to explain; -1 for the likeliest
  against: number; // id of the token whose logit is subtracted; -1 for none
  byQuery: boolean; // explain the attention by what was written at the query's position, not at the keys'
  order: HeadOrder; // what the heads are sorted by
  only: boolean; // show only heads of the kind they are sorted by
  runs: string[]; // whose curves are plotted; if empty, the current one
  axis: Axis; // scale of the step axis
  lab: string; // "" for the first one
  settings: Settings; // the lab's settings that differ from the defaults
  typed: WordInputs;
  over: "head" | "position"; // the columns of the effect map
  patched: boolean; // patch from the other text instead of ablating
  alone: boolean; // the logit lens shows the chosen token's probability
  filter: string; // group of sites to compare
  tiny: TinyExample | null; // null for the default example
  lesson: LessonPart;
  taken: number; // how many training steps are taken
  lessonStep: number; // which of them is shown, counted from 1; -1 for the last
  gradient: string; // the site or weight whose gradient is shown; "" for the usual one
  interval: number; // between two snapshots of the training run; -1 for the first
  chain: OpenCell[]; // the numbers whose gradients were opened, each from the one before
  stop: string; // of a lecture, such as 001.4; "" for the first unanswered one
  presenting: boolean; // show the stop in large type
}

/** The input fields of the word vectors view that differ from the example. */
export interface WordInputs {
  word?: string;
  sentences?: string;
  stage?: number; // the last one if missing
  start?: string; // start of the direction to add
  end?: string;
}

export type Settings = Record<string, string | number | boolean>;

export const START_LOCATION: PageLocation = {
  view: "steps",
  model: "",
  text: null,
  block: 0,
  head: 0,
  part: "head",
  step: 0,
  site: 0,
  matrix: null,
  row: -1,
  column: -1,
  open: [],
  sampling: DEFAULT_SAMPLING,
  edits: [],
  other: "",
  otherModel: "",
  path: [],
  target: -1,
  against: -1,
  byQuery: false,
  order: "block",
  only: false,
  runs: [],
  axis: "linear",
  lab: "",
  settings: {},
  typed: {},
  tiny: null,
  lesson: "gradient",
  taken: 1,
  lessonStep: -1,
  gradient: "",
  interval: -1,
  chain: [],
  stop: "",
  presenting: false,
  over: "head",
  patched: false,
  alone: false,
  filter: "",
};

const NUMBERS = [
  "block",
  "head",
  "step",
  "site",
  "row",
  "column",
  "target",
  "against",
  "interval",
  "taken",
  "lessonStep",
] as const;
const SWITCHES = ["byQuery", "only", "patched", "alone", "presenting"] as const;
const SAMPLING_LIMITS = { temperature: [0, 5], topK: [0, 100_000], topP: [0.01, 1], minP: [0, 1] } as const;

/** Formats a location as a query string, which contains only what differs from the start location. */
export function toQuery(location: PageLocation): string {
  const query = new URLSearchParams();
  const put = (name: string, value: string | number, initial: string | number) => {
    if (value !== initial) query.set(name, String(value));
  };
  put("model", location.model, START_LOCATION.model);
  if (location.text !== null) query.set("text", location.text);
  put("view", location.view, START_LOCATION.view);
  put("other", location.other, START_LOCATION.other);
  put("otherModel", location.otherModel, START_LOCATION.otherModel);
  put("part", location.part, START_LOCATION.part);
  put("matrix", location.matrix ?? "", "");
  put("order", location.order, START_LOCATION.order);
  put("runs", location.runs.join(","), START_LOCATION.runs.join(","));
  put("axis", location.axis, START_LOCATION.axis);
  put("lab", location.lab, START_LOCATION.lab);
  put("stop", location.stop, START_LOCATION.stop);
  for (const name of ["settings", "typed"] as const)
    if (Object.keys(location[name]).length > 0) query.set(name, JSON.stringify(location[name]));
  if (location.tiny !== null && location.view === "tiny") query.set("tiny", JSON.stringify(location.tiny));
  put("over", location.over, START_LOCATION.over);
  put("filter", location.filter, START_LOCATION.filter);
  for (const name of SWITCHES) if (location[name]) query.set(name, "yes");
  for (const name of NUMBERS) put(name, location[name], START_LOCATION[name]);
  for (const name of Object.keys(SAMPLING_LIMITS) as (keyof Sampling)[])
    put(name, location.sampling[name], DEFAULT_SAMPLING[name]);
  put("open", formatCells(location.open), "");
  put("lesson", location.lesson, START_LOCATION.lesson);
  put("gradient", location.gradient, START_LOCATION.gradient);
  put("chain", formatCells(location.chain), "");
  put("path", formatPath(location.path), "");
  if (location.edits.length > 0) query.set("edits", JSON.stringify(location.edits));
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

/** Parses a query string. Invalid values are replaced by those of the start location. */
export function fromQuery(text: string): PageLocation {
  const query = new URLSearchParams(text);
  const number = (name: string, min: number, max: number, initial: number) => {
    const text = query.get(name);
    const value = text === null || text.trim() === "" ? NaN : Number(text);
    return value >= min && value <= max ? value : initial;
  };
  const integer = (name: (typeof NUMBERS)[number]) => {
    const initial = START_LOCATION[name] as number;
    const value = number(name, -1, 1e6, initial);
    return Number.isInteger(value) ? value : initial;
  };
  const part = query.get("part") as PartName;
  const step = query.get("step") as StepName;
  const matrix = query.get("matrix");
  const view = query.get("view") as ViewName;
  const order = query.get("order") as HeadOrder;
  const lesson = query.get("lesson") as LessonPart;
  const gradient = query.get("gradient") ?? "";
  const stop = query.get("stop") ?? START_LOCATION.stop;
  const sampling = { ...DEFAULT_SAMPLING };
  for (const [name, [min, max]] of Object.entries(SAMPLING_LIMITS) as [keyof Sampling, [number, number]][]) {
    sampling[name] = number(name, min, max, DEFAULT_SAMPLING[name]);
  }
  sampling.topK = Math.round(sampling.topK);
  return {
    view: VIEWS.includes(view) ? view : START_LOCATION.view,
    model: query.get("model") ?? START_LOCATION.model,
    text: query.get("text"),
    part: PARTS.includes(part) ? part : START_LOCATION.part,
    block: Math.max(0, integer("block")),
    head: Math.max(0, integer("head")),
    step: STEPS.includes(step) ? step : Math.max(0, integer("step")),
    site: Math.max(0, integer("site")),
    matrix: matrix === "map" || matrix === "numbers" ? matrix : START_LOCATION.matrix,
    row: integer("row"),
    column: integer("column"),
    target: integer("target"),
    against: integer("against"),
    path: parsePath(query.get("path")),
    open: parseCells(query.get("open") ?? ""),
    other: query.get("other") ?? START_LOCATION.other,
    otherModel: query.get("otherModel") ?? START_LOCATION.otherModel,
    sampling,
    edits: parseEdits(query.get("edits")),
    order: HEAD_ORDERS.includes(order) ? order : START_LOCATION.order,
    byQuery: query.get("byQuery") === "yes",
    only: query.get("only") === "yes",
    patched: query.get("patched") === "yes",
    alone: query.get("alone") === "yes",
    over: query.get("over") === "position" ? "position" : START_LOCATION.over,
    filter: query.get("filter") ?? START_LOCATION.filter,
    runs: (query.get("runs") ?? "").split(",").filter((name) => name !== ""),
    axis: query.get("axis") === "log" ? "log" : START_LOCATION.axis,
    lab: query.get("lab") ?? START_LOCATION.lab,
    settings: parseSettings(query.get("settings")),
    typed: parseWordInputs(query.get("typed")),
    tiny: parseExample(parseJson(query.get("tiny"))),
    lesson: LESSON_PARTS.includes(lesson) ? lesson : START_LOCATION.lesson,
    gradient: /^[\w.]*$/.test(gradient) ? gradient : START_LOCATION.gradient,
    interval: integer("interval"),
    taken: integer("taken") >= 1 && integer("taken") <= MOST_STEPS ? integer("taken") : START_LOCATION.taken,
    lessonStep: Math.abs(integer("lessonStep")) <= MOST_STEPS ? integer("lessonStep") || -1 : -1,
    chain: parseCells(query.get("chain") ?? ""),
    stop: isStop(stop) ? stop : START_LOCATION.stop,
    presenting: query.get("presenting") === "yes",
  };
}

/** The names of the parameters whose values are invalid and were replaced. */
export function invalidParameters(text: string): string[] {
  const query = new URLSearchParams(text);
  const used = new URLSearchParams(toQuery(fromQuery(text)));
  const initial: Record<string, unknown> = { ...START_LOCATION, ...DEFAULT_SAMPLING };
  return [...query.keys()].filter((name) => {
    const value = query.get(name)!;
    const isInitial =
      value === "" || value === String(initial[name]) || value === JSON.stringify(initial[name]);
    return name in initial && !used.has(name) && !isInitial;
  });
}

const MAX_OPEN = 40; // numbers; a trained weight is at most about twenty steps away

function formatCells(cells: OpenCell[]): string {
  return cells
    .map(({ name, row, column, query }) => [name, row, column, ...(query === undefined ? [] : [query])])
    .map((cell) => cell.join(":"))
    .join(";");
}

/** Returns all cells, or none if any of them is malformed. */
function parseCells(text: string): OpenCell[] {
  const cells = text.split(";").map((each): OpenCell | null => {
    const match = /^([\w.]+):(\d{1,7}):(\d{1,7})(?::(\d{1,7}))?$/.exec(each);
    if (match === null) return null;
    const [name, row, column] = [match[1]!, Number(match[2]), Number(match[3])];
    return { name, row, column, ...(match[4] !== undefined && { query: Number(match[4]) }) };
  });
  return cells.length > MAX_OPEN || cells.includes(null) ? [] : (cells as OpenCell[]);
}

function parseJson(text: string | null): unknown {
  try {
    return text === null ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** Parses an object whose values are strings, numbers or booleans, and drops other values. */
function parseSettings(text: string | null): Settings {
  const json = parseJson(text);
  if (typeof json !== "object" || json === null || Array.isArray(json)) return {};
  const isScalar = (value: unknown) => ["string", "number", "boolean"].includes(typeof value);
  return Object.fromEntries(Object.entries(json).filter(([, value]) => isScalar(value)));
}

function parseWordInputs(text: string | null): WordInputs {
  const { stage, ...texts } = parseSettings(text);
  const names = ["word", "sentences", "start", "end"] as const;
  const typed = Object.fromEntries(
    names.filter((name) => typeof texts[name] === "string").map((name) => [name, texts[name]]),
  );
  return { ...typed, ...(Number.isInteger(stage) && { stage: stage as number }) };
}

function parseEdits(text: string | null): Edit[] {
  const edits = parseJson(text);
  const isEdit = (edit: unknown) => typeof (edit as Edit | null)?.site === "string";
  return Array.isArray(edits) && edits.every(isEdit) ? (edits as Edit[]) : [];
}
