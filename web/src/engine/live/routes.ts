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
  const cache = new TraceCache((name) => models.loaded(name));
  const route =
    <Body extends ModelNames>(answer: (body: Body, cache: TraceCache) => object, runs = true): Answer =>
    async (request) => {
      const body = request as Body;
      for (const { model } of body.other ? [body, body.other] : [body]) await models.open(model);
      return respond(async () => {
        if (runs) for (const text of textsOf(body)) await cache.prepare(text);
        return answer(body, cache);
      });
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
