/** The page's store: its location, the text that was run, and what is open. */

import { type ApiClient, ApiError } from "../engine/client";
import type { OfflineSource } from "../engine/offline";
import { fetchAppended, fetchTrace, fetchWithEdits, type TraceResult } from "../engine/traces";
import type { Config, Edit } from "../engine/types";
import type { Theme } from "../drawing/colors";
import { columnSites, LONG_TEXT } from "../layout/columns";
import { derive, deriveWeighed, findHighlights, WEIGHED } from "../model/derivation";
import type { HeadIndex } from "../model/headKinds";
import { isSnapshot, runName } from "../model/runs";
import {
  type Area,
  type Cell,
  isOverVocabulary,
  isSquare,
  isWeight,
  parseSite,
  siteShape,
} from "../model/sites";
import { findStep, PARTS, type PartName, type Step, stepsOf } from "../model/steps";
import { Autoplay } from "./autoplay.svelte";
import { Connection } from "./connection.svelte";
import { fromQuery, type OpenCell, type PageLocation, START_LOCATION, toQuery } from "./location";
import { MatrixCache } from "./matrixCache.svelte";
import { ModelList } from "./modelList.svelte";
import { allHeads, nextBlock, nextHead } from "./navigation";
import { Overview } from "./overview.svelte";
import { areasToPrefetch } from "./prefetch";
import { TrainingRuns } from "./training.svelte";

const HEAD_DELAY = 60; // milliseconds to wait for a head's numbers before it is shown without them
const LONG_HEAD_DELAY = 250; // for a long text, which takes longer to paint twice than to wait for

/** A text that was run through a model. Everything on screen belongs to one of these. */
export interface ShownText extends TraceResult {
  config: Config;
  matrices: MatrixCache;
}

/** The text that is shown, with a token appended. */
interface Appended {
  ids: number[];
  piece: string; // the text of the new token
  dropped: number;
}

export class Page {
  readonly api: ApiClient;
  readonly models: ModelList;
  readonly training: TrainingRuns;
  readonly overview: Overview;
  readonly connection = new Connection(() => void this.start(this.#example, undefined, this.#builtInExample));
  readonly autoplay = new Autoplay(() => this.moveStep(1));
  location = $state<PageLocation>({ ...START_LOCATION });
  draft = $state("");
  shown = $state.raw<ShownText | null>(null);
  unavailable = $state(false); // whether the last move led to something that a saved file lacks
  missingModel = $state(""); // the model that the address names, if there is none of that name
  generating = $state(false); // whether tokens are being appended one after the other
  droppedEdits = $state(0); // how many edits did not apply to the last input
  hovered = $state.raw<Cell | null>(null);
  headOrder = $state.raw<HeadIndex[] | null>(null); // null for the order of the model
  theme = $state<Theme>("light");

  #shownReopened = 0; // `connection.reopened` when the text was run
  #leftEdits = 0; // how many edits another model leaves behind
  #appending = Promise.resolve();
  #controller: AbortController | null = null;
  #target: HeadIndex | null = null; // the head that is about to be shown
  #example = "";
  #builtInExample = "";
  #loading = $state(0); // inputs under way

  constructor(
    api: ApiClient,
    query = "",
    readonly offline: OfflineSource | null = null,
  ) {
    this.api = api;
    this.models = new ModelList(api);
    this.training = new TrainingRuns(api);
    this.overview = new Overview(api);
    this.location = fromQuery(query);
    this.draft = this.location.text;
  }

  /** The training run of the model, if the server knows it. */
  readonly run = $derived.by(() => {
    const model = this.location.model;
    return this.training.runs.find((run) =>
      isSnapshot(model) ? run.name === runName(model) : run.model === model,
    );
  });
  readonly plottedRuns = $derived.by(() => {
    const named = this.location.runs.flatMap((name) => this.training.find(name) ?? []);
    if (named.length > 0) return named;
    const one = this.training.find(this.training.active ?? "") ?? this.run ?? this.training.runs[0];
    return one ? [one] : [];
  });
  readonly config = $derived(this.shown?.config ?? null);
  readonly canGenerate = $derived.by(() => this.offline === null && this.config?.causal !== false);
  readonly tokens = $derived(this.shown?.trace.tokens ?? []);
  readonly length = $derived(this.tokens.length);
  /** The selected token. */
  readonly row = $derived(
    this.location.row < 0 || this.location.row >= this.length ? this.length - 1 : this.location.row,
  );
  readonly block = $derived(Math.min(this.location.block, (this.config?.n_block ?? 1) - 1));
  readonly head = $derived(Math.min(this.location.head, (this.config?.n_head ?? 1) - 1));
  readonly steps: Step[] = $derived(
    this.config === null ? [] : stepsOf(this.location.part, this.config, this.block, this.head),
  );
  /** The parts of the model that can be opened. */
  readonly parts = $derived(PARTS.filter((part) => this.canShow({ part })));
  readonly step = $derived.by(() => {
    const { step } = this.location;
    const number = typeof step === "number" ? step : this.steps.findIndex(({ name }) => name === step);
    return Math.max(0, Math.min(number, this.steps.length - 1));
  });
  /** The site whose matrix is open. */
  readonly site = $derived.by(() => {
    const sites = this.steps[this.step]?.sites ?? [];
    return sites[Math.min(this.location.site, sites.length - 1)] ?? null;
  });
  /** The attention weights of the selected token in the selected head. */
  readonly weights = $derived.by(() => {
    if (this.location.part !== "head" || this.shown === null) return undefined;
    const name = `block.${this.block}.head.${this.head}.weights`;
    return this.shown.matrices.get({ name, rows: [this.row, this.row + 1] })?.values;
  });
  /** The token with the largest of these weights. */
  readonly mostAttended = $derived(
    this.weights?.reduce((best, weight, i) => (weight > this.weights![best]! ? i : best), 0) ?? 0,
  );
  /** Whether the screen still shows another text or model than the chosen one. */
  readonly stale = $derived(this.draft === "" || this.#loading > 0);
  /** Whether anything on screen is still loading. */
  readonly busy = $derived(this.connection.busy || (this.shown?.matrices.busy ?? false));
  /** From the first one opened to the one explained. */
  readonly openCells = $derived(this.location.open);
  /** The cell to explain: the last one opened, the hovered one, or a default. */
  readonly cell = $derived(this.openCells.at(-1) ?? this.hovered ?? this.#defaultCell());
  readonly derivation = $derived.by(() => {
    if (this.cell === null || this.shown === null) return null;
    const { name, row, column } = this.cell;
    if (parseSite(name).part === WEIGHED) return deriveWeighed(this.block, this.head, this.row, row, column);
    return derive(this.shown.config, this.shown.trace.ids, this.cell);
  });
  /** The areas that the explained cell was computed from. */
  readonly highlighted = $derived.by((): Area[] => {
    if (this.derivation === null || this.shown === null) return [];
    const onScreen = [...Object.values<string>(columnSites(this.block, this.head)), this.site];
    const isOnScreen = (name: string) => onScreen.includes(name);
    return findHighlights(this.shown.config, this.shown.trace.ids, this.derivation.inputs, isOnScreen);
  });

  /** Loads the models and runs the text of the address, `ids`, or the example: the built-in model has its own. */
  async start(example: string, ids?: number[], builtInExample = example): Promise<void> {
    [this.#example, this.#builtInExample] = [example, builtInExample];
    await this.connection.guard(async () => {
      await this.models.refresh();
      void this.training.refresh().catch(() => undefined); // optional
      // Snapshots are not listed, and the server may have closed this one.
      if (isSnapshot(this.location.model)) await this.models.open(this.location.model).catch(() => undefined);
      if (!this.models.find(this.location.model)?.config) {
        this.missingModel = this.location.model;
        this.location.model = this.models.first?.name ?? "";
      }
      if (this.location.model === "") return; // the model picker opens instead
      const builtIn = this.models.find(this.location.model)?.origin === "built-in";
      if (this.location.text === "") this.location.text = builtIn ? builtInExample : example;
      this.draft = this.location.text;
      await this.#run(ids && { ids, piece: "", dropped: 0 });
    });
  }

  /** Runs another text. The request for the previous one is aborted. */
  async setText(text: string): Promise<void> {
    this.draft = text;
    this.location.text = text;
    this.location.open = [];
    if (text === "") {
      this.#controller?.abort();
      return;
    }
    await this.connection.guard(() => this.#run());
  }

  /** Appends a token by its id, because a token may be part of a character or have no text at all. */
  append(id: number, piece: string): Promise<void> {
    // One after the other, so that no token is lost.
    this.#appending = this.#appending.then(async () => {
      const { shown } = this;
      if (shown === null) return;
      this.location.open = [];
      await this.connection.guard(() =>
        this.#run({ ids: [...shown.trace.ids, id], piece, dropped: shown.dropped }),
      );
    });
    return this.#appending;
  }

  /** Switches to another model once it is loaded. Changes nothing if it cannot be loaded. */
  async selectModel(model: string, example = ""): Promise<void> {
    if (this.models.find(model)?.state !== "loaded") {
      try {
        await this.models.open(model);
      } catch (error) {
        if (error instanceof ApiError && error.status > 0) return; // the model picker shows it
        this.connection.report(error);
        return;
      }
    }
    // Edits stay for another snapshot of the same run.
    if (runName(model) !== runName(this.location.model)) {
      this.#leftEdits = this.location.edits.length;
      this.location.edits = [];
      this.location.open = [];
    }
    this.location.model = model;
    this.missingModel = "";
    if (this.location.text === "") await this.setText(example);
    else await this.connection.guard(() => this.#run());
  }

  /** Restores the location of an address after the back or forward button. */
  async restore(query: string): Promise<void> {
    const before = this.location;
    const location = fromQuery(query);
    if (location.model === "") location.model = before.model;
    if (location.text === "") location.text = before.text;
    this.location = location;
    this.draft = location.text;
    this.hovered = null;
    const inputKey = ({ model, text, edits }: PageLocation) => JSON.stringify([model, text, edits]);
    if (inputKey(location) !== inputKey(before)) await this.connection.guard(() => this.#run());
  }

  /** Replaces the active edits and runs the text with them. */
  async setEdits(edits: Edit[]): Promise<void> {
    this.location.edits = edits;
    await this.connection.guard(() => this.#run());
  }

  /** Token id of the next word to explain. */
  readonly word = $derived.by(() => {
    const { word } = this.location;
    if (word >= 0 && (this.offeredWords?.includes(word) ?? true)) return word;
    return this.shown?.trace.next[0]?.id ?? 0;
  });
  /** The next words that can be explained; null if all can. */
  readonly offeredWords = $derived.by(() =>
    this.offline === null || this.shown === null ? null : this.offline.nextWords(this.shown.input),
  );

  goTo(target: Partial<Omit<PageLocation, "sampling" | "edits">>): void {
    const moves = [target.block, target.head, target.part].some((value) => value !== undefined);
    this.unavailable = moves && !this.canShow(target);
    if (this.unavailable) return;
    const part = target.part ?? this.location.part;
    if (part !== this.location.part && target.step === undefined) target = { ...target, step: 0, site: 0 };
    if (target.step !== undefined && target.step !== this.location.step) target = { site: 0, ...target };
    Object.assign(this.location, { open: [] }, target);
    this.#target = null;
    this.hovered = null;
    if (this.shown) void this.shown.matrices.prefetch(this.#areas(this.shown)); // before anything is painted
  }

  moveBlock(by: number): void {
    if (!this.config) return;
    const target = nextBlock(this.#target ?? this, by, this.config.n_block, (head) => this.canShow(head));
    void this.#moveTo(target);
  }

  /** In the order in which the heads are shown. */
  moveHead(by: number): void {
    if (!this.config) return;
    const order = this.headOrder?.length ? this.headOrder : allHeads(this.config);
    const part = "head";
    const target = nextHead(this.#target ?? this, by, order, (head) => this.canShow({ ...head, part }));
    void this.#moveTo({ ...target, part });
  }

  /** Whether a part of the model can be shown. */
  canShow({
    block = this.block,
    head = this.head,
    part = this.location.part,
  }: Partial<PageLocation>): boolean {
    return this.offline?.canShow({ block, head, part }) ?? true;
  }

  /** Whether a request about the shown text can be answered. */
  canAnswer(path: string, request: object): boolean {
    return (
      this.offline === null ||
      (this.shown !== null && this.offline.canAnswer(path, { ...this.shown.input, ...request }))
    );
  }

  /** Waits a moment for the numbers of another head before showing it, so that it is painted once. */
  async #moveTo(target: HeadIndex & { part?: PartName }): Promise<void> {
    this.unavailable = this.offline !== null && target.block === this.block && target.head === this.head;
    this.#target = target;
    const isLong = this.length > LONG_TEXT;
    const areas = isLong
      ? this.shown?.matrices.equivalentAreas([this.block, this.head], [target.block, target.head])
      : this.shown && this.#areas(this.shown, target);
    const ready = this.shown?.matrices.prefetch(areas ?? []);
    const delay = isLong ? LONG_HEAD_DELAY : HEAD_DELAY;
    await Promise.race([ready, new Promise((resolve) => setTimeout(resolve, delay))]);
    if (this.#target === target && !this.unavailable) this.goTo(target);
  }

  /** Moves to the next step or, after the last one, to the next part. Returns whether there was one. */
  moveStep(by: number): boolean {
    const step = this.step + by;
    if (step >= 0 && step < this.steps.length) {
      this.goTo({ step });
      return true;
    }
    const part: PartName | undefined = this.parts[this.parts.indexOf(this.location.part) + by];
    if (part === undefined || this.config === null) return false;
    const steps = stepsOf(part, this.config, this.block, this.head);
    this.goTo({ part, step: by > 0 ? 0 : steps.length - 1 });
    return true;
  }

  selectToken(row: number): void {
    this.goTo({ row: Math.max(0, Math.min(this.length - 1, row)) });
  }

  /** Explains a number. The matrix and the step that show it open with it. */
  openCell(cell: Cell, after: OpenCell[] = this.location.open): void {
    const weighed = parseSite(cell.name).part === WEIGHED;
    this.#showCells([...after, weighed ? { ...cell, query: this.row } : cell]);
  }

  /** Returns to the number from which the last ones were opened. */
  closeCells(count = 1): void {
    if (this.location.open.length > 0) this.#showCells(this.location.open.slice(0, -count));
  }

  #showCells(open: OpenCell[]): void {
    const last = open.at(-1);
    const place = last && this.config && findStep(last.name, this.config);
    if (!place || !this.canShow(place)) return this.goTo({ open });
    // A key or value that several heads share is shown in the current one.
    const shared = /kv_head/.test(last.name) && place.block === this.block;
    const head = shared ? { head: this.head } : {};
    this.goTo({ ...place, ...head, row: last.query ?? last.row, column: last.column, open });
  }

  #defaultCell(): Cell | null {
    if (this.site === null || this.config === null || this.length === 0) return null;
    const [, columns] = siteShape(this.config, this.length, this.site);
    const { part } = parseSite(this.site);
    const likeliest = this.shown?.trace.next[0]?.id ?? 0;
    const initial = isSquare(part) ? this.mostAttended : isOverVocabulary(part) ? likeliest : 0;
    const column = this.location.column >= 0 ? this.location.column : initial;
    const row = part === WEIGHED ? this.mostAttended : this.row;
    return { name: this.site, row, column: Math.min(column, columns - 1) };
  }

  /** The query string of the address. */
  get query(): string {
    const { block, head, row } = this;
    const step = this.step === 0 ? 0 : (this.steps[this.step]?.name ?? this.location.step);
    return toQuery({ ...this.location, block, head, step, row: this.location.row < 0 ? -1 : row });
  }

  async #run(appended?: Appended): Promise<void> {
    this.#loading++;
    try {
      await this.#load(appended);
    } finally {
      this.#loading--;
    }
  }

  async #load(appended?: Appended): Promise<void> {
    this.#controller?.abort();
    const { signal } = (this.#controller = new AbortController());
    const config = await this.models.loadConfig(this.location.model);
    const { model, text, edits } = $state.snapshot(this.location);
    const request = (edits: Edit[]) =>
      appended
        ? fetchAppended(this.api, { model, edits }, appended.ids, appended.dropped, config, signal)
        : fetchTrace(this.api, { model, text, edits }, config, signal);
    this.droppedEdits = this.#leftEdits;
    this.#leftEdits = 0;
    const { input, trace, dropped } = await fetchWithEdits(edits, config, request);
    if (input.edits !== edits) {
      this.location.edits = input.edits;
      this.droppedEdits = edits.length - input.edits.length;
    }
    const matrices = new MatrixCache(this.api, input, (error) => this.connection.report(error));
    const before = this.shown;
    signal.addEventListener("abort", () => matrices.close());
    let prefetched: Promise<void> | undefined;
    if (before && runName(before.input.model) === runName(model)) {
      if (before.input.model === model && this.#shownReopened === this.connection.reopened)
        matrices.adoptWeights(before.matrices);
      prefetched = matrices.prefetch(this.#areas({ config, trace }));
    }
    void this.connection.guard(() => this.overview.load(input, config, trace.ids.length, signal));
    await prefetched;
    if (signal.aborted) return;
    before?.matrices.close();
    if (appended) {
      const { draft } = this;
      this.draft = this.location.text = trace.text.startsWith(draft) ? trace.text : draft + appended.piece;
    }
    this.shown = { input, config, trace, matrices, dropped };
    this.#shownReopened = this.connection.reopened;
    const isShown = ({ name, row, column }: Cell) => {
      if (isWeight(name)) return true;
      const [rows, columns] = siteShape(config, trace.ids.length, name);
      return findStep(name, config) !== null && row < rows && column < columns;
    };
    if (!this.location.open.every(isShown)) this.location.open = [];
    this.hovered = null;
  }

  /** The areas that the views show, of the current head or another one. */
  #areas({ config, trace }: Pick<ShownText, "config" | "trace">, { block, head }: HeadIndex = this): Area[] {
    const { part, site } = this.location;
    return areasToPrefetch(config, trace.ids, { part, block, head, step: this.step, site });
  }
}
