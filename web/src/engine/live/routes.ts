/** The requests that the engine answers in the browser. */

import { ApiError } from "../client";
import { matrixResponse } from "../matrixResponse";
import { UserError } from "../userError";
import { attribute, compare, effects, lens, why } from "./analysis";
import { neighbors, senses } from "./embeddings";
import { Matrices, readPatterns, readSites, readStreams, spell, tokenize, traceText } from "./inspection";
import { type LiveModel, type TextRequest, TraceCache } from "./traceCache";

/** Answers a request, given its body, with a response or with a value to send as JSON. Throws an `ApiError`. */
export type Answer = (body: unknown) => Promise<unknown>;

/** Models by name. */
export interface ModelSource {
  /** Loads a model; called for every request about it. */
  open: (name: string) => Promise<LiveModel>;
  /** A model that is in memory. */
  loaded: (name: string) => LiveModel | undefined;
}

/** The answers by path. */
export function makeRoutes(models: ModelSource): Record<string, Answer> {
  const inUse = new ModelsInUse();
  const cache = new TraceCache((name) => models.loaded(name) ?? inUse.find(name));
  const route =
    <Body extends ModelNames>(answer: (body: Body, cache: TraceCache) => object, runs = true): Answer =>
    async (request) => {
      const body = request as Body;
      const names = (body.other ? [body, body.other] : [body]).map(({ model }) => model);
      return inUse.during(
        names,
        (name) => models.open(name),
        () =>
          respond(async () => {
            if (runs) for (const text of textsOf(body)) await cache.prepare(text);
            return answer(body, cache);
          }),
      );
    };
  return {
    "/api/tokens": route(tokenize, false),
    "/api/token_texts": route(spell, false),
    "/api/trace": route(traceText),
    "/api/sites": route(readSites),
    "/api/patterns": route(readPatterns),
    "/api/streams": route(readStreams),
    "/api/compare": route(compare),
    "/api/effects": route(effects),
    "/api/attribute": route(attribute),
    "/api/why": route(why),
    "/api/lens": route(lens),
    "/api/senses": route(senses),
    "/api/neighbors": route(neighbors),
  };
}

/** The models of the requests under way: one that is dropped from memory meanwhile can still be used. */
class ModelsInUse {
  readonly #uses = new Set<{ name: string; model: LiveModel }>();

  find(name: string): LiveModel | undefined {
    return [...this.#uses].findLast((use) => use.name === name)?.model;
  }

  /** Opens models one after the other, and keeps them until the task is done. */
  async during<T>(
    names: readonly string[],
    open: (name: string) => Promise<LiveModel>,
    task: () => Promise<T>,
  ): Promise<T> {
    const uses: { name: string; model: LiveModel }[] = [];
    try {
      for (const name of names) {
        const use = { name, model: await open(name) };
        uses.push(use);
        this.#uses.add(use);
      }
      return await task();
    } finally {
      for (const use of uses) this.#uses.delete(use);
    }
  }
}

/** What a request names: models, and texts that they run on. */
interface ModelNames extends Partial<TextRequest> {
  model: string;
  other?: TextRequest; // that a text is compared with
  source?: TextRequest["text"] | null; // that a text is patched from
}

function textsOf({ model, text, edits = [], other, source }: ModelNames): TextRequest[] {
  return [
    ...(text === undefined ? [] : [{ model, text, edits }]),
    ...(other ? [other] : []),
    ...(source == null ? [] : [{ model, text: source }]),
  ];
}

async function respond(answer: () => Promise<object>): Promise<unknown> {
  try {
    const value = await answer();
    return value instanceof Matrices ? matrixResponse(value.parts) : value;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    throw new ApiError(400, error.message, error.code || "invalid_request", error.values);
  }
}
