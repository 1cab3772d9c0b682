/** The page's store: its location, the text that was run, and what is selected. */

import { type ApiClient, ApiError } from "../engine/client";
import type { OfflineSource } from "../engine/offline";
import { type Problem, toProblem } from "../engine/problem";
import { fetchAppended, fetchTrace, fetchWithEdits } from "../engine/traces";
import type { Edit } from "../engine/types";
import type { Theme } from "../drawing/colors";
import { hasGradient } from "../model/gradientSites";
import type { HeadIndex } from "../model/headKinds";
import { isSnapshot, runName, trainedNow } from "../model/runs";
import { followToken } from "../model/selectedToken";
import { Autoplay } from "./autoplay.svelte";
import { Connection } from "./connection.svelte";
import { ModelExamples } from "./examples.svelte";
import { Generation } from "./generation.svelte";
import { fromQuery, type PageLocation, START_LOCATION, type ViewName } from "./location";
import { LectureState } from "./lectures.svelte";
import { MatrixCache } from "./matrixCache.svelte";
import { ModelList } from "./modelList.svelte";
import { Overview } from "./overview.svelte";
import { Selection, type ShownText } from "./selection.svelte";
import { TrainingRuns } from "./training.svelte";

/** The text that is shown, with a token appended. */
interface Appended {
  ids: number[];
  piece: string; // the text of the new token
  dropped: number;
}

/** What a page without a server cannot do, although its model runs. */
export interface Limits {
  isPublished: boolean; // whether anyone may visit the page, on a host without Clearhead
  runsLabs: boolean; // otherwise, labs were run beforehand with their default settings
  withoutViews: readonly ViewName[];
  savesFile?: boolean; // whether the server writes the page as one file
}

export class Page extends Selection {
  readonly api: ApiClient;
  readonly models: ModelList;
  readonly training: TrainingRuns;
  readonly overview: Overview;
  readonly examples: ModelExamples;
  readonly lectures = new LectureState();
  readonly connection = new Connection(() => void this.start());
  readonly autoplay = new Autoplay(() => this.moveStep(1));
  readonly generation = new Generation(this);
  draft = $state("");
  reportText = $state(""); // to report on instead of what the run held out
  reportStarted = $state(""); // the model and text of the report that is shown, as JSON
  missingModel = $state(""); // the model named in the address, if it does not exist
  refusedText = $state.raw<Problem | null>(null); // why the text in the address is not shown
  droppedEdits = $state(0); // how many edits did not apply to the last input
  asksAttention = false; // whether Attribution is opened to explain the attention rather than the prediction
  theme = $state<Theme>("light");

  #shownReopened = 0; // `connection.reopened` when the text was run
  #leftEdits = 0; // how many edits were dropped by switching models
  #controller: AbortController | null = null;
  #opening = $state(""); // the text that was chosen for the model
  #isTyped = false; // whether the reader typed the text
  #opensAt: Partial<PageLocation> = {}; // the head and token that were chosen along with it
  #openingHead: HeadIndex = { block: START_LOCATION.block, head: START_LOCATION.head }; // where the page opened
  #opensHead: boolean; // whether the head is chosen along with the text, because the address names none
  #loading = $state(0); // how many inputs are being run
  #extending = $state(0); // how many of them append a token

  constructor(
    api: ApiClient,
    query = "",
    offline: OfflineSource | null = null,
    readonly limits: Limits = { isPublished: false, runsLabs: offline === null, withoutViews: [] },
  ) {
    super(query, offline);
    this.api = api;
    this.models = new ModelList(api);
    this.training = new TrainingRuns(api);
    this.overview = new Overview(api);
    this.examples = new ModelExamples(api);
    this.#opensHead = !/[?&](block|head|part|row|open)=/.test(query);
    this.draft = this.location.text ?? "";
    if (limits.withoutViews.includes(this.location.view)) {
      this.location.view = START_LOCATION.view;
      this.ignored = [...this.ignored, "view"];
    }
  }

  /** The training run of the model, if the server knows it. */
  readonly run = $derived.by(() => {
    const model = this.location.model;
    return this.training.runs.find((run) =>
      isSnapshot(model) ? run.name === runName(model) : run.model === model,
    );
  });
  /** Whether the model's tokens are words or parts of words, and not characters or bytes. */
  readonly hasWords = $derived.by(() => {
    const tokenizer = this.models.find(this.location.model)?.tokenizer;
    return tokenizer !== "char" && tokenizer !== "byte";
  });
  readonly plottedRuns = $derived.by(() => {
    const named = this.location.runs.flatMap((name) => this.training.find(name) ?? []);
    if (named.length > 0) return named;
    const one = this.training.find(this.training.active ?? "") ?? this.run ?? this.training.runs[0];
    return one ? [trainedNow(one, this.training.runs)] : [];
  });
  /** Whether the address holds an empty text: nothing is shown until one is typed. */
  readonly isEmpty = $derived.by(() => this.shown === null && this.location.text === "");
  /** Whether a text is being run, or chosen for the model. */
  readonly loading = $derived(this.#loading > 0);
  /** The texts that the reader can choose: the one that was chosen for the model comes first. */
  readonly texts = $derived.by((): readonly string[] => {
    if (this.offline !== null) return this.offline.texts;
    const texts = this.examples.current?.texts ?? [];
    if (this.#opening === "") return texts;
    return [this.#opening, ...texts.filter((text) => text !== this.#opening)];
  });
  /** Whether the selected step is the one that the page opened on: neither the reader nor the address chose another. */
  get isAtOpening(): boolean {
    const { part, step, site, block, head } = this.location;
    const { block: openingBlock, head: openingHead } = this.#openingHead;
    const isFirst =
      part === START_LOCATION.part && step === START_LOCATION.step && site === START_LOCATION.site;
    return isFirst && block === openingBlock && head === openingHead;
  }
  /** Whether the screen still shows a text or model other than the chosen one. */
  readonly stale = $derived(
    this.draft === "" ||
      this.#loading > this.#extending || // what is shown remains valid when a token is appended
      (this.connection.problem !== null && this.shown?.trace.text !== this.location.text),
  );
  /** Whether anything on screen is still loading. */
  readonly busy = $derived(this.connection.busy || this.loading || (this.shown?.matrices.busy ?? false));
  /** Loads the models and runs the text in the address, `ids`, or the one chosen for the model. */
  async start(ids?: number[]): Promise<void> {
    await this.connection.guard(async () => {
      await this.models.refresh();
      void this.training.refresh().catch(() => undefined); // the page works without the list of runs
      // Snapshots are not listed, and the server may have closed this one.
      if (isSnapshot(this.location.model)) await this.models.open(this.location.model).catch(() => undefined);
      if (!this.models.find(this.location.model)?.config) {
        this.missingModel = this.location.model;
        this.location.model = this.models.first?.name ?? "";
      }
      if (this.location.model === "") return; // the model picker opens instead
      if (this.location.text === null && ids === undefined) await this.#choose();
      this.draft = this.location.text ?? "";
      if (this.draft === "" && ids === undefined) {
        await this.models.loadConfig(this.location.model);
        void this.examples.load(this.location.model);
        return;
      }
      const [opened, chained] = [this.location.open.length, this.location.chain.length];
      await this.#run(ids && { ids, piece: "", dropped: 0 }).catch((error) => this.#replaceText(error));
      const { block, head, row, open, gradient, chain } = this.location;
      const { config } = this;
      const beyond = {
        block: block !== this.block,
        head: head !== this.head,
        row: row >= this.length,
        open: open.length < opened,
        gradient: gradient !== "" && config !== null && !hasGradient(config, gradient),
        chain: chain.length < chained,
      };
      if (beyond.gradient) this.location.gradient = START_LOCATION.gradient;
      const names = ["block", "head", "row", "open", "gradient", "chain"] as const;
      this.ignored = [...this.ignored, ...names.filter((name) => this.shown !== null && beyond[name])];
    });
  }

  /** Opens on another text if the model cannot run the first one, for example because it lacks a character. */
  async #replaceText(error: unknown): Promise<void> {
    const isRefused = error instanceof ApiError && error.status === 400;
    if (!isRefused || this.shown !== null) throw error;
    await this.#choose();
    this.draft = this.location.text ?? "";
    await this.#run();
    this.refusedText = toProblem(error);
  }

  /** Chooses a text and a head for the model. */
  async #choose(): Promise<void> {
    const { model, text: before } = this.location;
    if (this.offline !== null) {
      this.location.text = this.offline.texts[0] ?? null;
      if (this.offline.opening !== null && this.location.text !== null)
        this.#openAt(this.location.text, this.offline.opening);
      return;
    }
    await this.#while(async () => {
      await this.models.loadConfig(model);
      const { text, block, head, position } = await this.api.opening(model);
      if (this.location.text !== before || this.location.model !== model) return; // the reader was faster
      this.location.text = this.draft = text;
      this.#openAt(text, { block, head, row: position });
    });
  }

  #openAt(text: string, at: HeadIndex & { row: number }): void {
    this.#opening = text;
    this.#isTyped = false;
    this.#opensAt = at;
    if (this.#opensHead) {
      Object.assign(this.location, at);
      this.#openingHead = { block: at.block, head: at.head };
    }
    this.#opensHead = true; // for the next model
  }

  /** Runs another text. The request for the previous one is aborted. */
  async setText(text: string, isTyped = true): Promise<void> {
    this.generation.leaveText();
    this.#isTyped = isTyped;
    this.refusedText = null;
    this.draft = text;
    if (text !== this.location.text) this.#forgetSteps();
    this.location.text = text;
    if (this.location.open.length > 0) this.location.open = []; // another empty list would redraw everything
    if (text === "") {
      this.abortRun();
      return;
    }
    await this.connection.guard(() => this.#run(undefined, isTyped));
  }

  /** Forgets the training steps, which were taken on another text or by another model. */
  #forgetSteps(): void {
    const { taken, lessonStep } = START_LOCATION;
    if (this.location.taken !== taken) Object.assign(this.location, { taken, lessonStep });
  }

  /** Runs one of the offered texts. Selects its last token or, if the text was chosen for the model, the head and token
   * chosen along with it. */
  async setExample(text: string): Promise<void> {
    const opening = text === this.#opening ? this.#opensAt : {};
    Object.assign(this.location, { row: -1, column: -1 }, opening);
    await this.setText(text, false);
  }

  /** Appends a token to the text that is shown. */
  async extend({ trace, dropped }: ShownText, id: number, piece: string): Promise<void> {
    this.location.open = [];
    this.#forgetSteps();
    await this.#run({ ids: [...trace.ids, id], piece, dropped });
  }

  /** Stops running the text. */
  abortRun(): void {
    this.#controller?.abort();
  }

  /** Switches to another model once it is loaded. Changes nothing if it cannot be loaded. */
  async selectModel(model: string): Promise<void> {
    if (this.models.find(model)?.state !== "loaded") {
      try {
        await this.models.open(model);
      } catch (error) {
        if (error instanceof ApiError && error.status > 0) return; // the model picker shows the error
        this.connection.report(error);
        return;
      }
    }
    const isOther = runName(model) !== runName(this.location.model);
    // Keep the edits for another snapshot of the same run.
    if (isOther) {
      this.#leftEdits = this.location.edits.length;
      this.location.edits = [];
      this.location.open = [];
    }
    const isOffered = !this.#isTyped && (this.#isTextOffered() || this.#opening !== "");
    if (model !== this.location.model) this.#forgetSteps();
    this.location.model = model;
    this.missingModel = "";
    await this.connection.guard(async () => {
      // A text that the reader did not type, or that the other model cannot read, is replaced by the model's own.
      if (!this.location.text || (isOther && (isOffered || !(await this.#canRead(model)))))
        await this.#choose();
      else if (isOther) {
        this.#opening = "";
        Object.assign(this.location, { row: -1, column: -1 }); // it may have other tokens
      }
      await this.#run();
    });
  }

  /** Whether the text is one of those that the page offers for the model. */
  #isTextOffered(): boolean {
    return this.texts.includes(this.location.text ?? "");
  }

  /** Whether the model's tokenizer knows all characters of the text. */
  async #canRead(model: string): Promise<boolean> {
    try {
      await this.api.tokens(model, this.location.text!);
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.status === 400) return false;
      throw error;
    }
  }

  /** Restores the location in an address after the back or forward button is pressed. */
  async restore(query: string): Promise<void> {
    const before = this.location;
    const location = fromQuery(query);
    if (location.model === "") location.model = before.model;
    location.text ??= before.text;
    this.location = location;
    this.draft = location.text ?? "";
    this.hovered = null;
    const inputKey = ({ model, text, edits }: PageLocation) => JSON.stringify([model, text, edits]);
    if (this.draft !== "" && inputKey(location) !== inputKey(before))
      await this.connection.guard(() => this.#run());
  }

  /** Replaces the active edits and runs the text with them. */
  async setEdits(edits: Edit[]): Promise<void> {
    this.location.edits = edits;
    await this.connection.guard(() => this.#run());
  }

  /** Id of the next token to explain. */
  readonly target = $derived.by(() => {
    const { target } = this.location;
    if (target >= 0 && (this.offeredTargets?.includes(target) ?? true)) return target;
    return this.shown?.trace.next[0]?.id ?? 0;
  });
  /** The next tokens that can be explained; null if all can. */
  readonly offeredTargets = $derived.by(() =>
    this.offline === null || this.shown === null ? null : this.offline.targets(this.shown.input),
  );

  /** Runs the text; if it was typed, the selection follows the selected token. */
  async #run(appended?: Appended, isTyped = false): Promise<void> {
    const extending = appended?.piece ? 1 : 0;
    this.#extending += extending;
    try {
      await this.#while(() => this.#load(appended, isTyped));
    } finally {
      this.#extending -= extending;
    }
  }

  async #while(task: () => Promise<void>): Promise<void> {
    this.#loading++;
    try {
      await task();
    } finally {
      this.#loading--;
    }
  }

  async #load(appended: Appended | undefined, isTyped: boolean): Promise<void> {
    this.abortRun();
    const { signal } = (this.#controller = new AbortController());
    // Sent at once if the model is ready: the page is then drawn while the model runs.
    const ready = this.models.readyConfig(this.location.model);
    const config = ready ?? (await this.models.loadConfig(this.location.model));
    const { model, text, edits } = $state.snapshot(this.location);
    const request = (edits: Edit[]) =>
      appended
        ? fetchAppended(this.api, { model, edits }, appended.ids, appended.dropped, config, signal)
        : fetchTrace(this.api, { model, text: text ?? "", edits }, config, signal);
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
      prefetched = matrices.prefetch(this.areas({ config, trace }));
    }
    if (this.offline === null) void this.examples.load(model);
    void this.connection.guard(() => this.overview.loadStreams(input, signal));
    await prefetched;
    if (signal.aborted) return;
    before?.matrices.close();
    if (appended) {
      const { draft } = this;
      this.draft = this.location.text = trace.text.startsWith(draft) ? trace.text : draft + appended.piece;
    }
    if (isTyped && before && this.location.row >= 0)
      this.location.row = followToken(before.trace.ids, trace.ids, this.row);
    this.shown = { input, config, trace, matrices, dropped };
    this.#shownReopened = this.connection.reopened;
    void this.prefetch();
    this.dropMissingCells(config, trace.ids.length);
    this.hovered = null;
  }
}
