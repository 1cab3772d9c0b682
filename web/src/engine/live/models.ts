/** The published models, each loaded when it is opened. */

import { ApiError } from "../client";
import type { Kernels } from "../kernels/kernels";
import { ReferenceKernels } from "../kernels/reference";
import { WasmKernels } from "../kernels/wasm";
import type { Config, Model } from "../types";
import { Transformer } from "../model/transformer";
import type { TokenizerFile } from "../tokenizer/file";
import { Tokenizer, type TokenizerConfig } from "../tokenizer/tokenizer";
import type { GpuOptions } from "../webgpu/device";
import { GpuRunner } from "../webgpu/runner";
import { inFolder, type ReadModelFile, readJson } from "../weights/files";
import { INDEX_FILE, type WeightIndex, Weights } from "../weights/weights";
import type { Routes } from "./dispatcher";
import type { ProgressMessage } from "./messages";
import type { LiveModel } from "./traceCache";

export const LIVE_FILE = "live.json";

/** The contents of `live.json`. */
export interface LiveIndex {
  models: PublishedModel[];
  labs: boolean; // whether the results of the labs are in `labs.json`
}

interface PublishedModel {
  details: Model;
  folder: string;
  ends: number[]; // ids of the tokens that end a text
  answers: Record<string, unknown>; // computed when the page was published, by path
}

interface ModelRequest {
  model: string;
}

interface LoadedModel extends LiveModel {
  details: Model;
}

export class LiveModels {
  readonly #loading = new Map<string, Promise<LoadedModel>>(); // kept when loaded
  #index: Promise<LiveIndex> | null = null;

  constructor(
    readonly readFile: ReadModelFile,
    readonly onprogress: (progress: ProgressMessage) => void,
    readonly gpu?: GpuOptions,
  ) {}

  /** The routes that list and open models. */
  readonly routes: Routes = {
    "/api/models": async () => {
      const { models } = await this.#readIndex();
      return { models: models.map(({ details }) => details), can_be_pulled: [] };
    },
    "/api/open": async (request) => (await this.open((request as ModelRequest).model)).details,
    "/api/opening": (request) => this.#recorded("/api/opening", request as ModelRequest),
    "/api/examples": (request) => this.#recorded("/api/examples", request as ModelRequest),
    "/api/heads": (request) => this.#recorded("/api/heads", request as ModelRequest),
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
    const { details, folder, ends } = await this.#published(name);
    const readFile = inFolder(this.readFile, folder);
    const [config, tokenizerFile, tokenizerConfig, index, kernels] = await Promise.all([
      readJson<Config>(readFile, "config.json"),
      readJson<TokenizerFile>(readFile, "tokenizer.json"),
      readJson<TokenizerConfig>(readFile, "tokenizer_config.json"),
      readJson<WeightIndex>(readFile, INDEX_FILE),
      createKernels(),
    ]);
    const onprogress = (done: number, total: number) => this.onprogress({ model: name, done, total });
    const weights = await Weights.load(index, kernels, readFile, onprogress);
    const tokenizer = Tokenizer.read(tokenizerFile, tokenizerConfig, ends);
    const network = new Transformer(config, weights);
    return { details, network, tokenizer, gpu: GpuRunner.create(network, this.gpu) };
  }

  async #recorded(path: string, { model }: ModelRequest): Promise<unknown> {
    return (await this.#published(model)).answers[path];
  }

  async #published(name: string): Promise<PublishedModel> {
    const { models } = await this.#readIndex();
    const found = models.find(({ details }) => details.name === name);
    if (!found) throw new ApiError(404, `there is no model ${name} here`, "model_not_found", { name });
    return found;
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
