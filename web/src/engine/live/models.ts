/** The published models, each loaded when it is opened. */

import { ApiError } from "../client";
import type { Kernels } from "../kernels/kernels";
import { ReferenceKernels } from "../kernels/reference";
import { WasmKernels } from "../kernels/wasm";
import type { Config, Model, Schemas } from "../types";
import { Transformer } from "../model/transformer";
import type { TokenizerFile } from "../tokenizer/file";
import { Tokenizer, type TokenizerConfig } from "../tokenizer/tokenizer";
import type { GpuOptions } from "../webgpu/device";
import { GpuRunner } from "../webgpu/runner";
import { inFolder, type ReadModelFile, readJson, UNREACHABLE } from "../weights/files";
import { INDEX_FILE, type WeightIndex, Weights } from "../weights/weights";
import type { Routes } from "./dispatcher";
import type { ProgressMessage } from "./messages";
import type { LiveModel } from "./traceCache";

export const LIVE_FILE = "live.json";

/** The contents of `live.json`. */
export interface LiveIndex {
  models: PublishedModel[];
  labs: boolean; // whether the results of the labs are in `labs.json`
  query?: string; // where the page opens, if its own address does not say
}

interface PublishedModel {
  details: Model;
  folder: string;
  ends: number[]; // ids of the tokens that end a text
  answers: Record<string, unknown>; // computed when the page was published, by path
  sha256: Record<string, string>; // of the JSON files, by name
}

interface ModelRequest {
  model: string;
}

interface LoadedModel extends LiveModel {
  details: Model;
  bytes: number; // of its weights
  gpu: GpuRunner | null;
}

const KEPT_BYTES = 256e6; // of models in memory; beyond this, the least recently used are dropped until needed again
const NOTHING_PULLED: Schemas["PullState"] = { name: null, state: "none", done: 0, total: 0, error: null };
const KEPT_MODELS = 2; // of any size, so that two can be compared

export class LiveModels {
  readonly #loading = new Map<string, Promise<LoadedModel>>(); // the most recently used one last
  readonly #loaded = new Map<string, LoadedModel>();
  #index: Promise<LiveIndex> | null = null;

  constructor(
    readonly readFile: ReadModelFile,
    readonly onprogress: (progress: ProgressMessage) => void,
    readonly gpu?: GpuOptions,
    readonly keptBytes = KEPT_BYTES,
  ) {}

  /** The routes that list and open models. */
  readonly routes: Routes = {
    "/api/models": async () => {
      const { models } = await this.#readIndex();
      return { models: models.map(({ details }) => this.#withState(details)), can_be_pulled: [] };
    },
    "/api/pulling": () => NOTHING_PULLED,
    "/api/open": async (request) =>
      this.#withState((await this.open((request as ModelRequest).model)).details),
    "/api/opening": (request) => this.#recorded("/api/opening", request as ModelRequest),
    "/api/examples": (request) => this.#recorded("/api/examples", request as ModelRequest),
    "/api/heads": (request) => this.#recorded("/api/heads", request as ModelRequest),
  };

  /** Loads a model unless it is in memory; one that failed to load is loaded again on the next request. */
  open(name: string): Promise<LoadedModel> {
    const known = this.#loading.get(name);
    const model = known ?? this.#load(name).catch((error: unknown) => Promise.reject(explain(error, name)));
    this.#loading.delete(name);
    this.#loading.set(name, model);
    if (!known)
      model.then(
        (loaded) => {
          this.#loaded.set(name, loaded);
          return this.#evict();
        },
        () => {
          this.#loading.delete(name);
          this.onprogress({ model: name, done: 0, total: 0 }); // nothing is being loaded anymore
        },
      );
    return model;
  }

  /** A model that is in memory. */
  loaded(name: string): LoadedModel | undefined {
    return this.#loaded.get(name);
  }

  /** Drops the least recently used models. Their memory is freed with the last trace of them. */
  #evict(): void {
    const newestFirst = [...this.#loading.keys()].reverse().filter((name) => this.#loaded.has(name));
    let bytes = 0;
    newestFirst.forEach((name, i) => {
      const model = this.#loaded.get(name)!;
      bytes += model.bytes;
      if (i < KEPT_MODELS || bytes <= this.keptBytes) return;
      model.gpu?.close();
      this.#loading.delete(name);
      this.#loaded.delete(name);
    });
  }

  async #load(name: string): Promise<LoadedModel> {
    const { details, folder, ends, sha256 } = await this.#published(name);
    const readFile = inFolder(this.readFile, folder);
    const readChecked = <T>(file: string) => readJson<T>(readFile, file, sha256[file]);
    const [config, tokenizerFile, tokenizerConfig, index, kernels] = await Promise.all([
      readChecked<Config>("config.json"),
      readChecked<TokenizerFile>("tokenizer.json"),
      readChecked<TokenizerConfig>("tokenizer_config.json"),
      readChecked<WeightIndex>(INDEX_FILE),
      createKernels(),
    ]);
    const onprogress = (done: number, total: number) => this.onprogress({ model: name, done, total });
    const weights = await Weights.load(index, kernels, readFile, onprogress);
    const tokenizer = Tokenizer.read(tokenizerFile, tokenizerConfig, ends);
    const network = new Transformer(config, weights);
    return { details, bytes: index.bytes, network, tokenizer, gpu: GpuRunner.create(network, this.gpu) };
  }

  /** A model as the list shows it. */
  #withState(details: Model): Model {
    return { ...details, state: this.#loaded.has(details.name) ? "loaded" : "not loaded" };
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

/** Says that a model that was never opened here needs a network; other errors are returned unchanged. */
function explain(error: unknown, name: string): unknown {
  if (!(error instanceof ApiError) || error.code !== UNREACHABLE) return error;
  const message = `${name} has not been loaded in this browser yet: loading it the first time requires a network connection`;
  return new ApiError(error.status, message, "model_not_stored", { name });
}

async function createKernels(): Promise<Kernels> {
  return (await WasmKernels.create()) ?? new ReferenceKernels();
}
