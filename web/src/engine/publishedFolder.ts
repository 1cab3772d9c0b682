/** A published folder: several precomputed texts, each fetched when it is chosen. */

import type { PartName } from "../model/steps";
import type { Fetch } from "./client";
import type { ViewName } from "../state/location";
import type { OfflineSource } from "./offline";
import { requestKey, type SavedContents, SavedFile, unpack } from "./savedFile";
import { type MatrixHeader, splitTensors, type Tensor, transpose } from "./savedText";
import type { HeadScores, Lab, LabResponse, Model, ModelInput } from "./types";

/** The contents of `publication.json`. */
export interface FolderIndex {
  details: Model;
  views: ViewName[];
  texts: { text: string; ids: number[]; file: string }[];
  opening: { block: number; head: number; row: number };
  heads: HeadScores;
  labs: boolean;
}

/** A text's file. `beside` holds the responses for comparing it with each of the other texts. */
type TextContents = SavedContents & { beside: SavedContents["exchanges"][] };

interface Labs {
  labs: Lab[];
  results: LabResponse[];
}

/** Reads a file from the folder. */
export type ReadFile = (name: string) => Promise<Uint8Array<ArrayBuffer>>;

export class PublishedFolder implements OfflineSource {
  readonly hasFlow = true;
  readonly views: readonly ViewName[];
  readonly texts: readonly string[];
  readonly opening: FolderIndex["opening"];
  #pending = new Map<number, Promise<SavedFile>>(); // by the text's index; kept after loading
  #loaded = new Map<number, SavedFile>();
  #labs: Promise<Labs> | null = null;

  private constructor(
    readonly index: FolderIndex,
    readonly weights: ReadonlyMap<string, Tensor>, // shared by all texts
    readonly readFile: ReadFile,
  ) {
    this.views = index.views;
    this.texts = index.texts.map(({ text }) => text);
    this.opening = index.opening;
  }

  static async open(readFile: ReadFile): Promise<PublishedFolder> {
    const [index, model] = await Promise.all([
      readJson<FolderIndex>(readFile, "publication.json"),
      readFile("model.bin").then((bytes) => unpack<{ matrices: MatrixHeader[] }>(bytes)),
    ]);
    const weights = splitTensors(model.contents.matrices, model.numbers);
    const embedding = weights.get("embedding.W");
    if (embedding && !weights.has("unembedding.W")) weights.set("unembedding.W", transpose(embedding)); // tied
    return new PublishedFolder(index, weights, readFile);
  }

  targets(input: ModelInput): readonly number[] {
    return this.#loadedText(input)?.targets() ?? [];
  }

  /** Every text was saved with the same parts, so any loaded text can answer. */
  canShow(place: { block: number; head: number; part: PartName }): boolean {
    return this.#anyText?.canShow(place) ?? true;
  }

  canAnswer(path: string, request: ModelInput): boolean {
    return this.#loadedText(request)?.canAnswer(path, request) ?? false;
  }

  canCompare(site: string): boolean {
    return this.#anyText?.has(site) ?? false;
  }

  readonly fetch: Fetch = async (path, { body }) => {
    const request = (typeof body === "string" ? JSON.parse(body) : {}) as Partial<ModelInput> & {
      other?: ModelInput;
      name?: string;
    };
    const { details, heads } = this.index;
    switch (path) {
      case "/api/models":
        return Response.json({ models: [details], can_be_pulled: [] });
      case "/api/open":
        return Response.json(details);
      case "/api/heads":
        return Response.json(heads);
      case "/api/labs":
        return Response.json({ labs: this.index.labs ? (await this.#readLabs()).labs : [] });
      case "/api/lab":
        return toResponse((await this.#readLabs()).results.find(({ lab }) => lab === request.name));
    }
    const number = this.#find(request);
    if (number < 0) return toResponse(undefined);
    if (path === "/api/tokens") return Response.json({ ids: this.index.texts[number]!.ids });
    const file = await this.#load(number);
    if (request.other === undefined) return file.fetch(path, { body: body ?? null });
    const comparison = (file.contents as TextContents).beside[this.#find(request.other)];
    const key = requestKey(path, request);
    return toResponse(comparison?.find((each) => requestKey(each.path, each.request) === key)?.response);
  };

  get #anyText(): SavedFile | undefined {
    return [...this.#loaded.values()][0];
  }

  #loadedText(input: Partial<ModelInput>): SavedFile | undefined {
    return this.#loaded.get(this.#find(input));
  }

  /** The index of the text that an input names, or -1. */
  #find({ text }: Partial<ModelInput>): number {
    if (text === undefined) return -1;
    if (typeof text === "string") return this.texts.indexOf(text);
    const ids = text.join();
    return this.index.texts.findIndex((each) => each.ids.join() === ids);
  }

  /** Loads a text once; one that failed to load is fetched again on the next request. */
  #load(number: number): Promise<SavedFile> {
    let file = this.#pending.get(number);
    if (file === undefined) {
      file = this.#readText(number);
      file.catch(() => this.#pending.delete(number));
      this.#pending.set(number, file);
    }
    return file;
  }

  async #readText(number: number): Promise<SavedFile> {
    const packed = await this.readFile(this.index.texts[number]!.file);
    const { contents, numbers } = await unpack<TextContents>(packed);
    const file = new SavedFile(contents, numbers, this.weights);
    this.#loaded.set(number, file);
    return file;
  }

  #readLabs(): Promise<Labs> {
    return (this.#labs ??= readJson<Labs>(this.readFile, "labs.json"));
  }
}

async function readJson<T>(readFile: ReadFile, name: string): Promise<T> {
  return JSON.parse(new TextDecoder().decode(await readFile(name))) as T;
}

function toResponse(answer: unknown): Response {
  if (answer !== undefined) return Response.json(answer);
  return Response.json({ error: { message: "this is not part of the published page" } }, { status: 404 });
}
