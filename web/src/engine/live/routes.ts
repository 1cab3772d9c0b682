/** The requests that the engine answers in the browser. */

import { attribute, compare, effects, lens, why } from "./analysis";
import { Matrices, readPatterns, readSites, readStreams, spell, tokenize, traceText } from "./inspection";
import type { TraceCache } from "./traceCache";

/** Answers a request's body with JSON or matrices; throws a `UserError` if it cannot. */
export type Answer = (body: unknown) => object | Matrices;

/** The answers by path. */
export function makeRoutes(cache: TraceCache): Record<string, Answer> {
  const route =
    <Body>(answer: (body: Body, cache: TraceCache) => object): Answer =>
    (body) =>
      answer(body as Body, cache);
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
  };
}
