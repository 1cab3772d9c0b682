/** The published models, each loaded when it is opened. */

import { ApiError } from "../client";
import type { Kernels } from "../kernels/kernels";
import { ReferenceKernels } from "../kernels/reference";
import { WasmKernels } from "../kernels/wasm";
import type { Config, Model } from "../types";
import { INDEX_FILE, type WeightIndex, Weights } from "../weights/weights";
import type { Routes } from "./dispatcher";
import { inFolder, type ReadModelFile, readJson } from "../weights/files";
import type { ProgressMessage } from "./messages";

export const LIVE_FILE = "live.json";

// Answered from `answers.json`: they depend on the model alone, and were computed when it was published.
const RECORDED = ["/api/heads", "/api/examples", "/api/opening"];

/** The contents of `live.json`. */
export interface LiveIndex {
  models: { details: Model; folder: string; ends: number[] }[]; // `ends`: ids of the tokens that end a text
}

/** A model in memory. */
export interface LoadedModel {
  details: Model;
  config: Config;
  tokenizer: object; // the contents of tokenizer.json
  tokenizerConfig: Record<string, unknown>;
  ends: number[];
  weights: Weights;
}

export class LiveModels {
  readonly #loading = new Map<string, Promise<LoadedModel>>(); // kept when loaded
  readonly #answers = new Map<string, Promise<Record<string, unknown>>>();
  readonly #index = new Map<string, Promise<LiveIndex>>();

  constructor(
    readonly readFile: ReadModelFile,
    readonly onprogress: (progress: ProgressMessage) => void,
  ) {}

  /** The routes that list and open models, and those with recorded answers. */
  readonly routes: Routes = {
    "/api/models": async () => {
      const { models } = await this.#readIndex();
      return { models: models.map(({ details }) => details), can_be_pulled: [] };
    },
    "/api/open": async (request) => (await this.open(nameIn(request))).details,
    ...Object.fromEntries(
      RECORDED.map((path) => [path, async (request) => (await this.#readAnswers(nameIn(request)))[path]]),
    ),
  };

  /** Loads a model once; one that failed to load is loaded again on the next request. */
  open(name: string): Promise<LoadedModel> {
    return remember(this.#loading, name, () => this.#load(name));
  }

  async #load(name: string): Promise<LoadedModel> {
    const { details, ends, readFile } = await this.#find(name);
    const [config, tokenizer, tokenizerConfig, index, kernels] = await Promise.all([
      readJson<Config>(readFile, "config.json"),
      readJson<object>(readFile, "tokenizer.json"),
      readJson<Record<string, unknown>>(readFile, "tokenizer_config.json"),
      readJson<WeightIndex>(readFile, INDEX_FILE),
      createKernels(),
    ]);
    const onprogress = (done: number, total: number) => this.onprogress({ model: name, done, total });
    const weights = await Weights.load(index, kernels, readFile, onprogress);
    return { details, config, tokenizer, tokenizerConfig, ends, weights };
  }

  #readAnswers(name: string): Promise<Record<string, unknown>> {
    return remember(this.#answers, name, async () =>
      readJson<Record<string, unknown>>((await this.#find(name)).readFile, "answers.json"),
    );
  }

  async #find(name: string): Promise<{ details: Model; ends: number[]; readFile: ReadModelFile }> {
    const { models } = await this.#readIndex();
    const found = models.find(({ details }) => details.name === name);
    if (!found) throw new ApiError(404, `there is no model ${name} here`, "model_not_found", { name });
    return { ...found, readFile: inFolder(this.readFile, found.folder) };
  }

  #readIndex(): Promise<LiveIndex> {
    return remember(this.#index, LIVE_FILE, () => readJson<LiveIndex>(this.readFile, LIVE_FILE));
  }
}

async function createKernels(): Promise<Kernels> {
  return (await WasmKernels.create()) ?? new ReferenceKernels();
}

function nameIn(request: unknown): string {
  return (request as { model: string }).model;
}

/** What was made under a name, or is being made; forgotten if that fails. */
function remember<T>(made: Map<string, Promise<T>>, name: string, make: () => Promise<T>): Promise<T> {
  let found = made.get(name);
  if (found === undefined) {
    found = make();
    found.catch(() => made.delete(name));
    made.set(name, found);
  }
  return found;
}
