/** The page's one store: where one stands, what goes through the model, and what is known of it. */

import { fromQuery, type Place, START, toQuery } from "./location";
import { type Area, type Cell, isOfWords, isSquare, parse } from "../model/sites";
import { Collection } from "./modelList.svelte";
import type { Theme } from "../drawing/colors";
import { Connection } from "./connection.svelte";
import { isSnapshot, runOf } from "../model/runs";
import { derive, deriveWeighed, lightUp, WEIGHED } from "../model/derivation";
import { sitesOf, WHOLE } from "../drawing/flow";
import type { Kept } from "../engine/offline";
import type { HeadName } from "../model/headKinds";
import { needsOf } from "./prefetch";
import { Overview } from "./overview.svelte";
import { headsOf, nextBlock, nextHead } from "./navigation";
import { Player } from "./autoplay.svelte";
import { type Reading, read, readChanged, readOn } from "../engine/traces";
import { type Config, type Edit, Server, ServerError } from "../engine/client";
import { shapeOf } from "../model/shapes";
import { Slices } from "./matrixCache.svelte";
import { PARTS, type PartName, type Step, stepsOf } from "../model/steps";
import { Training } from "./training.svelte";

const MOMENT = 60; // milliseconds that a head's numbers may take before it is shown without them
const LONG_MOMENT = 250; // of a long text, where painting twice would take longer than waiting

/** A text that went through a model. All that is drawn belongs to one of these. */
export interface Shown extends Reading {
  config: Config;
  slices: Slices;
}

/** A token that is added to what is shown. */
interface Added {
  ids: number[];
  piece: string;
  slid: number;
}

export class Page {
  readonly server: Server;
  readonly collection: Collection;
  readonly training: Training;
  readonly overview: Overview;
  readonly connection = new Connection(() => void this.start(this.#example));
  readonly player = new Player(() => this.pageStep(1));
  place = $state<Place>({ ...START });
  draft = $state("");
  shown = $state.raw<Shown | null>(null);
  missed = $state(false); // whether one wanted to where a saved file does not reach
  missing = $state(""); // a model that was asked for and is not here
  aside = $state(0); // changes that did not fit what was read last
  hovered = $state.raw<Cell | null>(null);
  opened = $state.raw<Cell[]>([]); // the doors gone through, the last is looked at
  sorted = $state.raw<HeadName[] | null>(null); // heads as they are shown, where not as they stand
  theme = $state<Theme>("light");

  #shownWhen = 0; // by how often models were reopened
  #aside = 0; // changes that another model leaves behind
  #appended = Promise.resolve();
  #leaving: AbortController | null = null;
  #aim: HeadName | null = null; // where one is about to be
  #example = "";
  #reading = $state(0); // texts on their way through the model

  constructor(
    server: Server,
    query = "",
    readonly kept: Kept | null = null,
  ) {
    this.server = server;
    this.collection = new Collection(server);
    this.training = new Training(server);
    this.overview = new Overview(server);
    this.place = fromQuery(query);
    this.draft = this.place.text;
  }

  /** The run that the model is of, if it can be watched. */
  readonly run = $derived.by(() => {
    const model = this.place.model;
    return this.training.runs.find((run) =>
      isSnapshot(model) ? run.name === runOf(model) : run.model === model,
    );
  });
  /** The runs whose curves are drawn. */
  readonly drawn = $derived.by(() => {
    const named = this.place.runs.flatMap((name) => this.training.find(name) ?? []);
    if (named.length > 0) return named;
    const one = this.training.find(this.training.now ?? "") ?? this.run ?? this.training.runs[0];
    return one ? [one] : [];
  });
  readonly config = $derived(this.shown?.config ?? null);
  readonly writes = $derived.by(() => this.kept === null && this.config?.causal !== false); // on from a text
  readonly tokens = $derived(this.shown?.trace.tokens ?? []);
  readonly length = $derived(this.tokens.length);
  /** The token that is followed. */
  readonly row = $derived(
    this.place.row < 0 || this.place.row >= this.length ? this.length - 1 : this.place.row,
  );
  readonly block = $derived(Math.min(this.place.block, (this.config?.n_block ?? 1) - 1));
  readonly head = $derived(Math.min(this.place.head, (this.config?.n_head ?? 1) - 1));
  readonly steps: Step[] = $derived(
    this.config === null ? [] : stepsOf(this.place.part, this.config, this.block, this.head),
  );
  /** The parts that can be opened. */
  readonly parts = $derived(PARTS.filter((part) => this.holds({ part })));
  readonly step = $derived.by(() => {
    const { step } = this.place;
    const number = typeof step === "number" ? step : this.steps.findIndex(({ name }) => name === step);
    return Math.max(0, Math.min(number, this.steps.length - 1));
  });
  /** The site whose matrix is open. */
  readonly site = $derived.by(() => {
    const sites = this.steps[this.step]?.sites ?? [];
    return sites[Math.min(this.place.site, sites.length - 1)] ?? null;
  });
  /** What the open head gives the others, seen from the followed token. */
  readonly weights = $derived.by(() => {
    if (this.place.part !== "head" || this.shown === null) return undefined;
    const name = `block.${this.block}.head.${this.head}.weights`;
    return this.shown.slices.get({ name, rows: [this.row, this.row + 1] })?.values;
  });
  /** The token that it looks at most. */
  readonly most = $derived(
    this.weights?.reduce((best, weight, i) => (weight > this.weights![best]! ? i : best), 0) ?? 0,
  );
  /** Whether what is on screen belongs to another text or model than the one that is asked for. */
  readonly stale = $derived(this.draft === "" || this.#reading > 0);
  /** Whether what is on screen is not yet all that belongs there. */
  readonly busy = $derived(this.connection.busy || (this.shown?.slices.busy ?? false));
  /** The cell whose making is told: the last one opened, or the one pointed at, or one to begin with. */
  readonly cell = $derived(this.opened.at(-1) ?? this.hovered ?? this.#first());
  /** How the cell that is told of was made. */
  readonly derivation = $derived.by(() => {
    if (this.cell === null || this.shown === null) return null;
    const { name, row, column } = this.cell;
    if (parse(name).part === WEIGHED) return deriveWeighed(this.block, this.head, this.row, row, column);
    return derive(this.shown.config, this.shown.trace.ids, this.cell);
  });
  /** What that cell was computed from; where nothing of that is on screen, what it goes back to there. */
  readonly lit = $derived.by((): Area[] => {
    if (this.derivation === null || this.shown === null) return [];
    const seen = [...Object.values<string>(sitesOf(this.block, this.head)), this.site];
    const isSeen = (name: string) => seen.includes(name);
    return lightUp(this.shown.config, this.shown.trace.ids, this.derivation.from, isSeen);
  });

  /** With an example where no text is named, or with the ids of a text that is given. */
  async start(example: string, ids?: number[]): Promise<void> {
    this.#example = example;
    await this.connection.guard(async () => {
      await this.collection.refresh();
      void this.training.refresh().catch(() => undefined); // the page can do without
      // In no list; and it may have been closed since it was opened.
      if (isSnapshot(this.place.model)) await this.collection.open(this.place.model).catch(() => undefined);
      if (!this.collection.find(this.place.model)?.config) {
        this.missing = this.place.model;
        this.place.model = this.collection.first?.name ?? "";
      }
      if (this.place.model === "") return; // the picker says what can be done
      if (this.place.text === "") this.place.text = example;
      this.draft = this.place.text;
      await this.#open(ids && { ids, piece: "", slid: 0 });
    });
  }

  /** Type: the text goes through the model as soon as the one before it has given way. */
  async type(text: string): Promise<void> {
    this.draft = text;
    this.place.text = text;
    if (text === "") {
      this.#leaving?.abort();
      return;
    }
    await this.connection.guard(() => this.#open());
  }

  /** One more token, whatever it says: it may be a part of a character, or have no text at all. */
  append(id: number, piece: string): Promise<void> {
    // One after the other: none is lost to the next.
    this.#appended = this.#appended.then(async () => {
      const { shown } = this;
      if (shown === null) return;
      await this.connection.guard(() =>
        this.#open({ ids: [...shown.trace.ids, id], piece, slid: shown.slid }),
      );
    });
    return this.#appended;
  }

  /** Another model, once it is loaded; where it cannot be, all stays as it is. */
  async choose(model: string, example = ""): Promise<void> {
    if (this.collection.find(model)?.state !== "loaded") {
      try {
        await this.collection.open(model);
      } catch (error) {
        if (error instanceof ServerError && error.status > 0) return; // the picker shows it
        this.connection.fail(error);
        return;
      }
    }
    // The same model at another time of its training can be changed in the same way.
    if (runOf(model) !== runOf(this.place.model)) {
      this.#aside = this.place.edits.length;
      this.place.edits = [];
    }
    this.place.model = model;
    this.missing = "";
    if (this.place.text === "") await this.type(example);
    else await this.connection.guard(() => this.#open());
  }

  /** What the address says now, after going back or forth. */
  async visit(query: string): Promise<void> {
    const before = this.place;
    const place = fromQuery(query);
    if (place.model === "") place.model = before.model;
    if (place.text === "") place.text = before.text;
    this.place = place;
    this.draft = place.text;
    this.opened = [];
    const asked = ({ model, text, edits }: Place) => JSON.stringify([model, text, edits]);
    if (asked(place) !== asked(before)) await this.connection.guard(() => this.#open());
  }

  /** Change what the model computes; everything is read anew with these changes in force. */
  async change(edits: Edit[]): Promise<void> {
    this.place.edits = edits;
    await this.connection.guard(() => this.#open());
  }

  /** The next word that is asked about. */
  readonly word = $derived.by(() => {
    const { word } = this.place;
    if (word >= 0 && (this.offered?.includes(word) ?? true)) return word;
    return this.shown?.trace.next[0]?.id ?? 0;
  });
  /** The next words that can be asked about, where not all can. */
  readonly offered = $derived.by(() =>
    this.kept === null || this.shown === null ? null : this.kept.words(this.shown.question),
  );

  goTo(where: Partial<Omit<Place, "sampling" | "edits">>): void {
    const moves = [where.block, where.head, where.part].some((each) => each !== undefined);
    this.missed = moves && !this.holds(where);
    if (this.missed) return;
    const part = where.part ?? this.place.part;
    if (part !== this.place.part && where.step === undefined) where = { ...where, step: 0, site: 0 };
    if (where.step !== undefined && where.step !== this.place.step) where = { site: 0, ...where };
    Object.assign(this.place, where);
    this.#aim = null;
    this.opened = [];
    this.hovered = null;
    if (this.shown) void this.shown.slices.prepare(this.#needs(this.shown)); // before anything is painted
  }

  pageBlock(by: number): void {
    if (!this.config) return;
    const aim = nextBlock(this.#aim ?? this, by, this.config.n_block, (aim) => this.holds(aim));
    void this.#turnTo(aim);
  }

  /** In the order that heads are shown in. */
  pageHead(by: number): void {
    if (!this.config) return;
    const order = this.sorted?.length ? this.sorted : headsOf(this.config);
    const part = "head";
    const aim = nextHead(this.#aim ?? this, by, order, (aim) => this.holds({ ...aim, part }));
    void this.#turnTo({ ...aim, part });
  }

  /** Whether one can go there. */
  holds({ block = this.block, head = this.head, part = this.place.part }: Partial<Place>): boolean {
    return this.kept?.holds({ block, head, part }) ?? true;
  }

  /** Whether a question about what is shown has an answer. */
  knows(path: string, asked: object): boolean {
    return (
      this.kept === null ||
      (this.shown !== null && this.kept.knows(path, { ...this.shown.question, ...asked }))
    );
  }

  /** To another head, once its numbers have come, or after a moment: so all of it is painted once. */
  async #turnTo(aim: HeadName & { part?: PartName }): Promise<void> {
    this.missed = this.kept !== null && aim.block === this.block && aim.head === this.head; // there is no other
    this.#aim = aim;
    const isLong = this.length > WHOLE;
    const needs = isLong
      ? this.shown?.slices.alike([this.block, this.head], [aim.block, aim.head])
      : this.shown && this.#needs(this.shown, aim);
    const ready = this.shown?.slices.prepare(needs ?? []);
    const moment = isLong ? LONG_MOMENT : MOMENT;
    await Promise.race([ready, new Promise((resolve) => setTimeout(resolve, moment))]);
    if (this.#aim === aim && !this.missed) this.goTo(aim);
  }

  /** The next step; past the last one, the next part of the block. */
  pageStep(by: number): boolean {
    const step = this.step + by;
    if (step >= 0 && step < this.steps.length) {
      this.goTo({ step });
      return true;
    }
    const part: PartName | undefined = this.parts[this.parts.indexOf(this.place.part) + by];
    if (part === undefined || this.config === null) return false;
    const steps = stepsOf(part, this.config, this.block, this.head);
    this.goTo({ part, step: by > 0 ? 0 : steps.length - 1 });
    return true;
  }

  follow(row: number): void {
    this.goTo({ row: Math.max(0, Math.min(this.length - 1, row)) });
  }

  /** Go through a door: what this cell was made of. */
  open(cell: Cell): void {
    this.opened = [...this.opened, cell];
  }

  /** Back through so many doors. */
  close(count = 1): void {
    this.opened = this.opened.slice(0, -count);
  }

  #first(): Cell | null {
    if (this.site === null || this.config === null || this.length === 0) return null;
    const [, columns] = shapeOf(this.config, this.length, this.site);
    const { part } = parse(this.site);
    const usual = isSquare(part) ? this.most : isOfWords(part) ? (this.shown?.trace.next[0]?.id ?? 0) : 0;
    const column = this.place.column >= 0 ? this.place.column : usual;
    return {
      name: this.site,
      row: part === WEIGHED ? this.most : this.row,
      column: Math.min(column, columns - 1),
    };
  }

  get query(): string {
    const { block, head, row } = this;
    const step = this.step === 0 ? 0 : (this.steps[this.step]?.name ?? this.place.step);
    return toQuery({ ...this.place, block, head, step, row: this.place.row < 0 ? -1 : row });
  }

  async #open(added?: Added): Promise<void> {
    this.#reading++;
    try {
      await this.#goThrough(added);
    } finally {
      this.#reading--;
    }
  }

  async #goThrough(added?: Added): Promise<void> {
    this.#leaving?.abort();
    const leaving = (this.#leaving = new AbortController());
    const config = await this.collection.configOf(this.place.model);
    const { model, text, edits } = $state.snapshot(this.place);
    const ask = (edits: Edit[]) =>
      added
        ? readOn(this.server, { model, text, edits }, added.ids, added.slid, config, leaving.signal)
        : read(this.server, { model, text, edits }, config, leaving.signal);
    this.aside = this.#aside;
    this.#aside = 0;
    const { question, trace, slid } = await readChanged(edits, config, ask);
    if (question.edits !== edits) {
      this.place.edits = question.edits;
      this.aside = edits.length - question.edits.length;
    }
    const slices = new Slices(this.server, question, (error) => this.connection.fail(error));
    const before = this.shown;
    leaving.signal.addEventListener("abort", () => slices.close());
    let prepared: Promise<void> | undefined;
    if (before && runOf(before.question.model) === runOf(model)) {
      if (before.question.model === model && this.#shownWhen === this.connection.reopened)
        slices.adopt(before.slices);
      prepared = slices.prepare(this.#needs({ config, trace }));
    }
    void this.connection.guard(() => this.overview.read(question, config, trace.ids.length, leaving.signal));
    await prepared;
    if (leaving.signal.aborted) return;
    before?.slices.close();
    if (added) {
      const { draft } = this;
      this.draft = this.place.text = trace.text.startsWith(draft) ? trace.text : draft + added.piece;
    }
    this.shown = { question, config, trace, slices, slid };
    this.#shownWhen = this.connection.reopened;
    this.opened = [];
    this.hovered = null;
  }

  /** What the views show of a text, here or at another head. */
  #needs({ config, trace }: Pick<Shown, "config" | "trace">, { block, head }: HeadName = this): Area[] {
    const { part, site } = this.place;
    return needsOf(config, trace.ids, { part, block, head, step: this.step, site });
  }
}
