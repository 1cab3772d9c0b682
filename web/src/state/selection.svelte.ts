/** What is selected for the text that is shown: a part of the model, a head, a step, a token and a number. */

import type { OfflineSource } from "../engine/offline";
import type { TraceResult } from "../engine/traces";
import type { Config } from "../engine/types";
import { columnSites, LONG_TEXT } from "../layout/columns";
import {
  derive,
  type Derivation,
  deriveWeighed,
  findHighlights,
  visiblePositions,
  WEIGHED,
} from "../model/derivation";
import { isGradient } from "../model/gradientSites";
import type { HeadIndex } from "../model/headKinds";
import { indexOfLargest, runnerUp } from "../model/matrix";
import {
  type Area,
  type Cell,
  isNeuron,
  isOverVocabulary,
  isSquare,
  isWeight,
  parseSite,
  siteShape,
} from "../model/sites";
import { findStep, openingStep, PARTS, type PartName, type Step, stepsOf } from "../model/steps";
import {
  fromQuery,
  invalidParameters,
  type OpenCell,
  type PageLocation,
  START_LOCATION,
  toQuery,
} from "./location";
import type { MatrixCache } from "./matrixCache.svelte";
import { allHeads, nextBlock, nextHead, nextPart } from "./navigation";
import { areasToPrefetch } from "./prefetch";

const HEAD_DELAY = 60; // milliseconds to wait for a head's numbers before it is shown without them
const LESSON_CHOICES = ["lesson", "taken", "lessonStep", "gradient", "chain", "interval"];
const LONG_HEAD_DELAY = 250; // for a long text: painting it twice takes longer than waiting

/** A text that was run through a model. Everything on screen belongs to one of these. */
export interface ShownText extends TraceResult {
  config: Config;
  matrices: MatrixCache;
}

export class Selection {
  location = $state<PageLocation>({ ...START_LOCATION });
  shown = $state.raw<ShownText | null>(null);
  unavailable = $state(false); // whether the last move led to something that a saved file lacks
  ignored = $state.raw<string[]>([]); // parameters of the address that are invalid or do not fit the model and text
  hovered = $state.raw<Cell | null>(null);
  headOrder = $state.raw<HeadIndex[] | null>(null); // null for the order of the model

  #target: HeadIndex | null = null; // the head that is about to be shown

  constructor(
    query: string,
    readonly offline: OfflineSource | null,
  ) {
    this.location = fromQuery(query);
    this.ignored = invalidParameters(query);
  }

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
  readonly steps: Step[] = $derived.by(() => {
    if (this.config === null) return [];
    return stepsOf(this.location.part, this.config, this.block, this.head);
  });
  /** The parts of the model that can be opened. */
  readonly parts = $derived(PARTS.filter((part) => this.canShow({ part })));
  readonly step = $derived.by(() => {
    const { step } = this.location;
    const number = typeof step === "number" ? step : this.steps.findIndex(({ name }) => name === step);
    return Math.max(0, Math.min(number, this.steps.length - 1));
  });
  /** The site whose matrix is shown. */
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
  readonly mostAttended = $derived(indexOfLargest(this.weights));
  /** The token with the second largest; null if only one is visible. */
  readonly runnerUp = $derived.by(() => {
    if (this.weights === undefined || this.config === null) return null;
    return runnerUp(this.weights, this.mostAttended, visiblePositions(this.config, this.block, this.row));
  });
  /** The open numbers, from the first one opened to the one explained. */
  readonly openCells = $derived(this.location.open);
  /** The cell to explain: the last one opened, the hovered one of the shown matrix, or a default. */
  readonly cell = $derived(
    this.openCells.at(-1) ?? (this.hovered?.name === this.site ? this.hovered : null) ?? this.#defaultCell(),
  );
  readonly derivation = $derived(this.#derive(this.cell));
  /** The areas that the open cell, the one under the pointer or the explained one was computed from. */
  readonly highlighted = $derived.by((): Area[] => {
    const derivation = this.#derive(this.openCells.at(-1) ?? this.hovered ?? this.cell);
    if (derivation === null || this.shown === null) return [];
    const onScreen = [...Object.values<string>(columnSites(this.block, this.head)), this.site];
    const isOnScreen = (name: string) => onScreen.includes(name);
    return findHighlights(this.shown.config, this.shown.trace.ids, derivation.inputs, isOnScreen);
  });

  #derive(cell: Cell | null): Derivation | null {
    if (cell === null || this.shown === null) return null;
    const { name, row, column } = cell;
    if (parseSite(name).part === WEIGHED) return deriveWeighed(this.block, this.head, this.row, row, column);
    return derive(this.shown.config, this.shown.trace.ids, cell);
  }

  goTo(target: Partial<Omit<PageLocation, "sampling" | "edits">>): void {
    const moves = [target.block, target.head, target.part].some((value) => value !== undefined);
    this.unavailable = moves && !this.canShow(target);
    if (this.unavailable) return;
    const part = target.part ?? this.location.part;
    if (part !== this.location.part && target.step === undefined)
      target = { ...target, step: openingStep(part), site: 0 };
    if (target.step !== undefined && target.step !== this.location.step) target = { site: 0, ...target };
    // Choices in the learning view leave the open numbers of the steps unchanged.
    const keepsOpen = Object.keys(target).every((name) => LESSON_CHOICES.includes(name));
    Object.assign(this.location, keepsOpen ? {} : { open: [] }, target);
    this.ignored = [];
    this.#target = null;
    this.hovered = null;
    void this.prefetch(); // before anything is painted
  }

  /** Requests the numbers of the selected step and then, while the reader looks at them, those of the next one. */
  protected async prefetch(): Promise<void> {
    const { shown, step } = this;
    if (shown === null) return;
    await shown.matrices.prefetch(this.areas(shown));
    if (this.shown !== shown || this.step !== step || step + 1 >= this.steps.length) return;
    shown.matrices.readAhead(this.areas(shown, this, { step: step + 1, site: 0 }));
  }

  moveBlock(by: number): void {
    if (!this.config) return;
    const target = nextBlock(this.#target ?? this, by, this.config.n_block, (head) => this.canShow(head));
    void this.#moveTo(target);
  }

  /** Moves through the heads in the order in which they are shown. */
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
      : this.shown && this.areas(this.shown, target);
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
    const target =
      this.config && nextPart(this, this.location.part, by, this.config, (at) => this.canShow(at));
    if (target === null || this.config === null) return false;
    const steps = stepsOf(target.part, this.config, target.block, this.head);
    this.goTo({ ...target, step: by > 0 ? 0 : steps.length - 1, site: 0 });
    return true;
  }

  selectToken(row: number): void {
    this.goTo({ row: Math.max(0, Math.min(this.length - 1, row)) });
  }

  /** Explains a number, and opens the step and the matrix that show it. */
  openCell(cell: Cell, after: OpenCell[] = this.location.open): void {
    const weighed = parseSite(cell.name).part === WEIGHED;
    this.#showCells([...after, weighed ? { ...cell, query: this.row } : cell]);
  }

  /** Closes the last `count` open numbers and returns to the one before them. */
  closeCells(count = 1): void {
    if (this.location.open.length > 0) this.#showCells(this.location.open.slice(0, -count));
  }

  /** Closes the open numbers if the model or the text no longer has all of them. */
  protected dropMissingCells(config: Config, length: number): void {
    const isShown = ({ name, row, column }: Cell) => {
      if (isWeight(name)) return true;
      const [rows, columns] = siteShape(config, length, name);
      return findStep(name, config) !== null && row < rows && column < columns;
    };
    if (!this.location.open.every(isShown)) this.location.open = [];
    const hasNumber = (cell: Cell) => isGradient(config, length, cell);
    if (!this.location.chain.every(hasNumber)) this.location.chain = [];
  }

  #showCells(open: OpenCell[]): void {
    const last = open.at(-1);
    const place = last && this.config && findStep(last.name, this.config);
    if (!place || !this.canShow(place)) return this.goTo({ open });
    // A key or value that several heads share is shown in the current head; outside the heads, the head stays selected.
    const shared = /kv_head/.test(last.name) && place.block === this.block;
    const head = shared || !/head/.test(last.name) ? { head: this.head } : {};
    this.goTo({ ...place, ...head, row: last.query ?? last.row, column: last.column, open });
  }

  #defaultCell(): Cell | null {
    if (this.site === null || this.config === null || this.length === 0) return null;
    const [, columns] = siteShape(this.config, this.length, this.site);
    const { part } = parseSite(this.site);
    const initial = isSquare(part)
      ? this.mostAttended
      : isOverVocabulary(part)
        ? this.#likeliest()
        : isNeuron(part)
          ? this.#mostActive()
          : 0;
    const column = this.location.column >= 0 ? this.location.column : initial;
    const row = part === WEIGHED ? this.mostAttended : this.row;
    return { name: this.site, row, column: Math.min(column, columns - 1) };
  }

  /** The neuron with the largest activation for the selected token. */
  #mostActive(): number {
    const name = `block.${this.block}.hidden`;
    return indexOfLargest(this.shown?.matrices.get({ name, rows: [this.row, this.row + 1] })?.values);
  }

  /** Whether the explained cell belongs to a neuron that no token of the text activates. */
  readonly isInactiveNeuron = $derived.by(() => {
    if (this.cell === null || !isNeuron(parseSite(this.cell.name).part)) return false;
    const { block } = parseSite(this.cell.name);
    const { column } = this.cell;
    const name = `block.${block}.hidden`;
    const values = this.shown?.matrices.get({ name, columns: [column, column + 1] })?.values;
    return values?.every((value) => value === 0) ?? false;
  });

  /** The token most likely to follow the selected one. */
  #likeliest(): number {
    const logits = this.shown?.matrices.get({ name: "logits", rows: [this.row, this.row + 1] })?.values;
    return logits?.reduce((best, logit, id) => (logit > logits[best]! ? id : best), 0) ?? 0;
  }

  /** The query string of the address. */
  get query(): string {
    const { block, head, row } = this;
    const step = this.step === 0 ? 0 : (this.steps[this.step]?.name ?? this.location.step);
    return toQuery({ ...this.location, block, head, step, row: this.location.row < 0 ? -1 : row });
  }

  /** The areas that the views show for the current head or another one. */
  protected areas(
    { config, trace }: Pick<ShownText, "config" | "trace">,
    { block, head }: HeadIndex = this,
    { step, site } = { step: this.step, site: this.location.site },
  ): Area[] {
    return areasToPrefetch(config, trace.ids, { part: this.location.part, block, head, step, site });
  }
}
