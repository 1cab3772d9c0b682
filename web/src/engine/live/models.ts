/** The published models, each loaded when it is opened. */

import { ApiError } from "../client";
import type { Kernels } from "../kernels/kernels";
import { ReferenceKernels } from "../kernels/reference";
import { WasmKernels } from "../kernels/wasm";
import type { Config, Model } from "../types";
import { INDEX_FILE, type WeightIndex, Weights } from "../weights/weights";
import type { Routes } from "./dispatcher";
import { inFolder, type ReadFile, readJson } from "../weights/files";
import type { ProgressMessage } from "./messages";

export const LIVE_FILE = "live.json";

/** The contents of `live.json`. */
export interface LiveIndex {
  models: { details: Model; folder: string }[];
}

/** A model in memory, with the kernels that hold its matrices. */
export interface LoadedModel {
  details: Model;
  config: Config;
  tokenizer: unknown; // the contents of tokenizer.json
  weights: Weights;
  kernels: Kernels;
}

export class LiveModels {
  readonly #loading = new Map<string, Promise<LoadedModel>>(); // kept when loaded
  #index: Promise<LiveIndex> | null = null;

  constructor(
    readonly readFile: ReadFile,
    readonly onprogress: (progress: ProgressMessage) => void,
  ) {}

  /** The routes that list and open models. */
  readonly routes: Routes = {
    "/api/models": async () => {
      const { models } = await this.#readIndex();
      return { models: models.map(({ details }) => details), can_be_pulled: [] };
    },
    "/api/open": async (request) => (await this.open((request as { model: string }).model)).details,
  };

  /** Loads a model once; one that failed to load is loaded again on the next request. */
  open(name: string): Promise<LoadedModel> {
    let model = this.#loading.get(name);
    if (model === undefined) {
      model = this.#load(name);
      model.catch(() => this.#loading.delete(name));
      this.#loading.set(name, model);
    }
    return model;
  }

  async #load(name: string): Promise<LoadedModel> {
    const { models } = await this.#readIndex();
    const found = models.find(({ details }) => details.name === name);
    if (!found) throw new ApiError(404, `there is no model ${name} here`, "model_not_found", { name });
    const readFile = inFolder(this.readFile, found.folder);
    const [config, tokenizer, index, kernels] = await Promise.all([
      readJson<Config>(readFile, "config.json"),
      readJson(readFile, "tokenizer.json"),
      readJson<WeightIndex>(readFile, INDEX_FILE),
      createKernels(),
    ]);
    const onprogress = (done: number, total: number) => this.onprogress({ model: name, done, total });
    const weights = await Weights.load(index, kernels, readFile, onprogress);
    return { details: found.details, config, tokenizer, weights, kernels };
  }

  #readIndex(): Promise<LiveIndex> {
    if (this.#index === null) {
      this.#index = readJson<LiveIndex>(this.readFile, LIVE_FILE);
      this.#index.catch(() => (this.#index = null));
    }
    return this.#index;
  }
}

async function createKernels(): Promise<Kernels> {
  return (await WasmKernels.create()) ?? new ReferenceKernels();
}
