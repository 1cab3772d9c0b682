/** The routes for word vectors: the senses of a word in many sentences, and the nearest neighbors of a vector. */

import { Trace } from "../inspect/trace";
import { findWord } from "../inspect/wordPositions";
import { mapSenses, neighbors as findNeighbors, stages, tokenVectors } from "../inspect/wordSenses";
import type { Schemas } from "../types";
import { UserError } from "../userError";
import { finite } from "./finite";
import type { About, LiveModel, TraceCache } from "./traceCache";

const MAX_SENTENCE_TOKENS = 4096; // in all sentences together

/** Projects the vectors of one word in many sentences onto a plane, at every stage of the model. */
export function senses(body: Schemas["SensesRequest"], cache: TraceCache): Schemas["SensesResponse"] {
  const { network, tokenizer } = cache.model(body.model);
  const sentences = body.sentences.map((text) => [...tokenizer.startIds, ...tokenizer.encode(text)]);
  const count = sentences.reduce((sum, ids) => sum + ids.length, 0);
  if (count > MAX_SENTENCE_TOKENS)
    throw new UserError(
      `the sentences have ${count} tokens; the limit is ${MAX_SENTENCE_TOKENS}`,
      "too_many_tokens",
      { count, most: MAX_SENTENCE_TOKENS },
    );
  if (count === 0)
    throw new UserError("the sentences are empty: expected at least one character", "text_empty");
  const places = sentences.flatMap((ids, sentence) => {
    if (ids.length === 0) return [];
    const trace = new Trace(network, ids);
    const pieces = tokenizer.pieces(ids);
    const texts = ids.map((id, i) => (tokenizer.hasText(id) ? pieces[i]! : ""));
    return findWord(body.word, texts).map((position) => ({
      sentence,
      trace,
      position,
      piece: pieces[position]!,
    }));
  });
  if (places.length < 2) {
    const occurs = places.length > 0 ? "occurs once" : "does not occur";
    throw new UserError(
      `'${body.word}' ${occurs} in these texts: expected at least two occurrences`,
      "word_too_rare",
      { word: body.word, count: places.length },
    );
  }
  return {
    stages: stages(network.config),
    occurrences: places.map(({ sentence, position, piece }) => ({ sentence, position, piece })),
    ...mapSenses(places),
  };
}

/** The tokens whose embeddings are nearest to the vector at a position. */
export function neighbors(body: About<"NeighborsRequest">, cache: TraceCache): Schemas["NeighborsResponse"] {
  const trace = cache.trace(body);
  const { stage = "embedding", position = -1, along, count = 12 } = body;
  if (!stages(trace.config).includes(stage))
    throw new UserError(`stage '${stage}': expected embedding, block.0.input, …, or final`);
  const model = cache.model(body.model);
  const vectors = tokenVectors(trace, stage);
  let vector = trace.read(stage, [trace.checkPosition(position)]).values;
  if (along) {
    const [start, end] = [along.start, along.end].map((token) => vectors.row(findToken(model, token)));
    vector = vector.map((value, i) => value + end![i]! - start![i]!);
  }
  const nearest = findNeighbors(vectors, vector, count);
  const texts = model.tokenizer.pieces(nearest.map(([id]) => id));
  return {
    neighbors: nearest.map(([id, cosine], i) => ({ id, text: texts[i]!, cosine: finite(cosine) })),
  };
}

function findToken({ tokenizer }: LiveModel, token: string): number {
  const ids = tokenizer.encode(token);
  if (ids.length === 1) return ids[0]!;
  const pieces = tokenizer.pieces(ids).map((piece) => `'${piece}'`);
  throw new UserError(
    `'${token}' is ${ids.length} tokens ([${pieces.join(", ")}]), expected a single one`,
    "not_one_token",
    { word: token, count: ids.length },
  );
}
