/** A published folder in a model's place: texts that went through it beforehand, each fetched when it is chosen. */

import type { Place, ViewName } from "../state/location";
import type { Kept } from "./offline";
import { type Contents, questionKey, Recording, unpack } from "./savedFile";
import type { Ask, HeadScores, Lab, LabAnswer, Model, Question } from "./client";
import { exchange, type Listed, type Numbers, takeNumbers } from "./savedText";

/** What the folder says of itself. */
export interface Listing {
  details: Model;
  views: ViewName[];
  texts: { text: string; ids: number[]; file: string }[];
  heads: HeadScores; // what each head does
  labs: boolean;
}

/** What is kept of one text: also how far it is from each of the others. */
type TextContents = Contents & { beside: Contents["exchanges"][] };

interface Labs {
  labs: Lab[];
  answers: LabAnswer[];
}

/** Gives a file of the folder. */
export type Fetch = (name: string) => Promise<Uint8Array<ArrayBuffer>>;

export class Publication implements Kept {
  readonly flow = true;
  readonly views: readonly ViewName[];
  readonly texts: readonly string[];
  #fetched = new Map<number, Promise<Recording>>();
  #recordings = new Map<number, Recording>(); // those that have come
  #labs: Promise<Labs> | null = null;

  private constructor(
    readonly listing: Listing,
    readonly weights: ReadonlyMap<string, Numbers>, // common to all texts
    readonly fetch: Fetch,
  ) {
    this.views = listing.views;
    this.texts = listing.texts.map(({ text }) => text);
  }

  static async open(fetch: Fetch): Promise<Publication> {
    const [listing, model] = await Promise.all([
      readJson<Listing>(fetch, "publication.json"),
      fetch("model.bin").then((bytes) => unpack<{ matrices: Listed[] }>(bytes)),
    ]);
    const weights = takeNumbers(model.contents.matrices, model.numbers);
    const embedding = weights.get("embedding.W");
    if (embedding && !weights.has("unembedding.W")) weights.set("unembedding.W", exchange(embedding)); // tied
    return new Publication(listing, weights, fetch);
  }

  words(question: Question): readonly number[] {
    return this.#known(question)?.words() ?? [];
  }

  /** What is kept of one text is kept of all. */
  holds(place: Pick<Place, "block" | "head" | "part">): boolean {
    return this.#any?.holds(place) ?? true;
  }

  knows(path: string, asked: Question): boolean {
    return this.#known(asked)?.knows(path, asked) ?? false;
  }

  compares(site: string): boolean {
    return this.#any?.has(site) ?? false;
  }

  readonly ask: Ask = async (path, { body }) => {
    const asked = (typeof body === "string" ? JSON.parse(body) : {}) as Partial<Question> & {
      other?: Question;
      name?: string;
    };
    const { details, heads } = this.listing;
    switch (path) {
      case "/api/models":
        return Response.json({ models: [details], can_be_pulled: [] });
      case "/api/open":
        return Response.json(details);
      case "/api/heads":
        return Response.json(heads);
      case "/api/labs":
        return Response.json({ labs: this.listing.labs ? (await this.#readLabs()).labs : [] });
      case "/api/lab":
        return found((await this.#readLabs()).answers.find(({ lab }) => lab === asked.name));
    }
    const number = this.#find(asked);
    if (number < 0) return found(undefined);
    if (path === "/api/tokens") return Response.json({ ids: this.listing.texts[number]!.ids });
    const recording = await this.#read(number);
    if (asked.other === undefined) return recording.ask(path, { body: body ?? null });
    const beside = (recording.contents as TextContents).beside[this.#find(asked.other)];
    const key = questionKey(path, asked);
    return found(beside?.find((each) => questionKey(each.path, each.asked) === key)?.answer);
  };

  get #any(): Recording | undefined {
    return [...this.#recordings.values()][0];
  }

  #known(asked: Partial<Question>): Recording | undefined {
    return this.#recordings.get(this.#find(asked));
  }

  /** Which of the texts is asked about; -1 where none is. */
  #find({ text }: Partial<Question>): number {
    if (text === undefined) return -1;
    if (typeof text === "string") return this.texts.indexOf(text);
    const ids = text.join();
    return this.listing.texts.findIndex((each) => each.ids.join() === ids);
  }

  /** A text that could not be fetched is fetched again when it is asked for again. */
  #read(number: number): Promise<Recording> {
    let recording = this.#fetched.get(number);
    if (recording === undefined) {
      recording = this.#fetch(number);
      recording.catch(() => this.#fetched.delete(number));
      this.#fetched.set(number, recording);
    }
    return recording;
  }

  async #fetch(number: number): Promise<Recording> {
    const packed = await this.fetch(this.listing.texts[number]!.file);
    const { contents, numbers } = await unpack<TextContents>(packed);
    const recording = new Recording(contents, numbers, this.weights);
    this.#recordings.set(number, recording);
    return recording;
  }

  #readLabs(): Promise<Labs> {
    return (this.#labs ??= readJson<Labs>(this.fetch, "labs.json"));
  }
}

async function readJson<Told>(fetch: Fetch, name: string): Promise<Told> {
  return JSON.parse(new TextDecoder().decode(await fetch(name))) as Told;
}

/** The answer, where there is one. */
function found(answer: unknown): Response {
  if (answer !== undefined) return Response.json(answer);
  return Response.json({ error: { message: "this is not part of the published page" } }, { status: 404 });
}
