/** The requests that the engine answers in the browser. */

import { ApiError } from "../client";
import { matrixResponse } from "../matrixResponse";
import { UserError } from "../userError";
import { attribute, compare, effects, lens, why } from "./analysis";
import { neighbors, senses } from "./embeddings";
import { Matrices, readPatterns, readSites, readStreams, spell, tokenize, traceText } from "./inspection";
import { type LiveModel, TraceCache } from "./traceCache";

/** Answers a request, given its body, with a response or with a value to send as JSON. Throws an `ApiError`. */
export type Answer = (body: unknown) => Promise<unknown>;

/** The answers by path. `open` loads a model; it is called for every request about the model. */
export function makeRoutes(open: (model: string) => Promise<LiveModel>): Record<string, Answer> {
  let models: ReadonlyMap<string, LiveModel> = new Map(); // those of the request that is being answered
  const cache = new TraceCache((name) => models.get(name));
  const route =
    <Body extends ModelNames>(answer: (body: Body, cache: TraceCache) => object): Answer =>
    async (request) => {
      const body = request as Body;
      const opened = new Map<string, LiveModel>();
      for (const { model } of body.other ? [body, body.other] : [body]) opened.set(model, await open(model));
      models = opened;
      return respond(() => answer(body, cache));
    };
  return {
    "/api/tokens": route(tokenize),
    "/api/token_texts": route(spell),
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

/** The models that a request is about. */
interface ModelNames {
  model: string;
  other?: { model: string };
}

function respond(answer: () => object): unknown {
  try {
    const value = answer();
    return value instanceof Matrices ? matrixResponse(value.parts) : value;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    throw new ApiError(400, error.message, error.code || "invalid_request", error.values);
  }
}
