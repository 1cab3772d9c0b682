/** Recent traces. A trace keeps only the residual stream, so requests for several sites of one text run the model
 * once. */

import { type PatchSource, Edits } from "../inspect/edits";
import { Trace } from "../inspect/trace";
import type { Transformer } from "../model/transformer";
import type { ModelInput, Schemas } from "../types";
import { UserError } from "../userError";
import type { GpuRunner } from "../webgpu/runner";

const MAX_TRACES = 4;
const MAX_TOKENS = 4096; // in a text, and in total in the texts that its edits patch from
const MAX_TEXTS = 16; // texts that the edits of one trace may patch from
const NO_EDITS = "[]";
/** Up to this many tokens after a cached trace are run on the CPU, with the keys and values of the tokens before them. An
 * estimate: it was not measured on any GPU. */
const FEW_TOKENS = 8;

/** What the routes need of a tokenizer. */
export interface TextTokenizer {
  startIds: readonly number[];
  encode(text: string): number[];
  decode(ids: number[]): string;
  pieces(ids: number[]): string[];
  hasText(id: number): boolean;
}

/** A model that runs in the browser. */
export interface LiveModel {
  network: Transformer;
  tokenizer: TextTokenizer;
  gpu?: Pick<GpuRunner, "run"> | null;
}

/** A text as requests name it; without edits by default. */
export type TextRequest = Omit<ModelInput, "edits"> & Partial<Pick<ModelInput, "edits">>;

/** A request about a text, where edits are optional. */
export type About<Name extends keyof Schemas> = Omit<Schemas[Name], keyof TextRequest> & TextRequest;

interface CachedTrace {
  model: string;
  edits: string; // as JSON
  trace: Trace;
}

/** The most recently used traces of some models. */
export class TraceCache {
  #traces: CachedTrace[] = []; // the most recently used one last
  #running: Promise<void> = Promise.resolve(); // on the GPU

  constructor(readonly findModel: (name: string) => LiveModel | undefined) {}

  model(name: string): LiveModel {
    const model = this.findModel(name);
    if (!model) throw new UserError(`model '${name}' is not on this page`, "model_not_found", { name });
    return model;
  }

  /** The trace of a text with its edits, from the cache if possible. */
  trace({ model, text, edits = [] }: TextRequest): Trace {
    const ids = this.#encode(model, text);
    if (edits.length === 0) return this.#unedited(model, ids);
    const { config } = this.model(model).network;
    return this.#get(model, ids, JSON.stringify(edits), () => {
      const sources = this.#patchSources(model, edits);
      const parsed = Edits.parse(edits, config, (source) => sources.get(source)!);
      return this.#unedited(model, ids).withEdits(parsed);
    });
  }

  /** Runs on the GPU what the trace of a text needs, if its model has one; `trace` then finds it in the cache.
   *
   * Continuing a cached trace by a few tokens, and blocks with edits and those after them, are left to the CPU.
   */
  async prepare({ model, text, edits = [] }: TextRequest): Promise<void> {
    const { gpu } = this.model(model);
    if (!gpu) return;
    const texts = [this.#encode(model, text), ...this.#patchTexts(model, edits).values()];
    // One after the other: what another request already runs is not run again.
    for (const ids of texts) {
      this.#running = this.#running.catch(() => undefined).then(() => this.#runOnGpu(model, gpu, ids));
      await this.#running;
    }
  }

  async #runOnGpu(model: string, gpu: Pick<GpuRunner, "run">, ids: number[]): Promise<void> {
    const [, same] = this.#longestPrefix(model, ids);
    if (this.#find(model, ids, NO_EDITS) || ids.length - same <= FEW_TOKENS) return;
    const run = await gpu.run(ids);
    if (!run) return;
    const { network } = this.model(model);
    const known = {
      stream: run.stream,
      first: network.config.n_block,
      ...(run.cache && { cache: run.cache }),
    };
    this.#get(model, ids, NO_EDITS, () => new Trace(network, ids, new Edits(), known));
  }

  /** The text of each token of a trace. */
  tokens(model: string, { ids }: Trace): string[] {
    return this.model(model).tokenizer.pieces([...ids]);
  }

  #unedited(model: string, ids: number[]): Trace {
    return this.#get(model, ids, NO_EDITS, () => {
      const [prefix, same] = this.#longestPrefix(model, ids);
      return prefix ? prefix.after(ids, same) : new Trace(this.model(model).network, ids);
    });
  }

  #get(model: string, ids: number[], edits: string, make: () => Trace): Trace {
    this.#dropOutdated(model);
    const entry = this.#find(model, ids, edits) ?? { model, edits, trace: make() };
    this.#traces = [...this.#traces.filter((each) => each !== entry), entry].slice(-MAX_TRACES);
    return entry.trace;
  }

  /** Drops the traces of a model that was loaded again: they would keep its former weights in memory. */
  #dropOutdated(model: string): void {
    const { network } = this.model(model);
    this.#traces = this.#traces.filter((each) => each.model !== model || each.trace.network === network);
  }

  #find(model: string, ids: number[], edits: string): CachedTrace | undefined {
    return this.#traces.find(
      (each) => each.model === model && each.edits === edits && each.trace.ids.join() === ids.join(),
    );
  }

  /** The trace that shares the most leading tokens with `ids`, and how many. Typing changes a text at its end. */
  #longestPrefix(model: string, ids: number[]): [Trace | null, number] {
    let best: [Trace | null, number] = [null, 0];
    for (const { model: name, trace } of this.#traces) {
      if (name !== model || !trace.continues) continue;
      let same = 0;
      while (same < ids.length - 1 && ids[same] === trace.ids[same]) same++; // at least one token must be run
      if (same > best[1]) best = [trace, same];
    }
    return best;
  }

  #encode(model: string, text: string | number[]): number[] {
    const { tokenizer, network } = this.model(model);
    const ids = typeof text === "string" ? [...tokenizer.startIds, ...tokenizer.encode(text)] : text;
    const { n_context, n_vocab } = network.config;
    const most = Math.min(n_context, MAX_TOKENS);
    if (ids.length === 0)
      throw new UserError("the text is empty: expected at least one character", "text_empty");
    if (ids.length > most)
      throw new UserError(
        `the text has ${ids.length} tokens; the limit is ${most}`,
        "context_length_exceeded",
        { count: ids.length, most },
      );
    const unknown = ids.find((id) => !(id >= 0 && id < n_vocab));
    if (unknown !== undefined)
      throw new UserError(`token ${unknown} does not exist: expected an id from 0 to ${n_vocab - 1}`);
    return ids;
  }

  /** The traces of the distinct texts that edits patch from. */
  #patchSources(model: string, edits: ModelInput["edits"]): Map<string, PatchSource> {
    const texts = this.#patchTexts(model, edits);
    return new Map([...texts].map(([text, ids]) => [text, this.#unedited(model, ids)]));
  }

  /** The token ids of the distinct texts that edits patch from. */
  #patchTexts(model: string, edits: ModelInput["edits"]): Map<string, number[]> {
    const texts = new Set(edits.map(({ text }) => text).filter((text) => text != null));
    if (texts.size > MAX_TEXTS)
      throw new UserError(
        `the edits patch from ${texts.size} texts; the limit is ${MAX_TEXTS}`,
        "too_many_texts",
        { count: texts.size, most: MAX_TEXTS },
      );
    const ids = new Map([...texts].map((text) => [text, this.#encode(model, text)]));
    const count = [...ids.values()].reduce((sum, each) => sum + each.length, 0);
    if (count > MAX_TOKENS)
      throw new UserError(
        `the edits patch from texts with ${count} tokens; the limit is ${MAX_TOKENS}`,
        "too_many_tokens",
        { count, most: MAX_TOKENS },
      );
    return ids;
  }
}

/** The range of blocks, start inclusive and stop exclusive; all blocks by default. */
export function chooseBlocks(blocks: readonly number[] | null | undefined, nBlock: number): number[] {
  return chooseRange(blocks, nBlock, "blocks") ?? Array.from({ length: nBlock }, (_, i) => i);
}

/** The numbers from a start to an exclusive stop; null without a range. */
export function chooseRange(
  bounds: readonly number[] | null | undefined,
  size: number,
  name: string,
): number[] | null {
  if (!bounds) return null;
  const [start, stop] = bounds as [number, number];
  if (!(start >= 0 && start < stop && stop <= size))
    throw new UserError(`${name} ${start} to ${stop}: expected 0 <= start < stop <= ${size}`);
  return Array.from({ length: stop - start }, (_, i) => start + i);
}
