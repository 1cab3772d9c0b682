/** A text through a model: of one that is too long for it, the last window, as when it writes. */

import { fitting } from "../model/edits";
import { type Config, type Edit, type Question, type Server, ServerError, type TraceAnswer } from "./client";

const CANDIDATES = 1000; // of the next word, told with their texts
const LONGEST = 4096; // tokens that the server takes
const ADDED = 8; // tokens that a model's tokenizer may put before a text

export interface Reading {
  question: Question;
  trace: TraceAnswer;
  slid: number; // tokens that have left the window
}

const windowOf = (config: Config) => Math.min(config.n_context, LONGEST);

export async function read(
  server: Server,
  question: Question,
  config: Config,
  signal: AbortSignal,
): Promise<Reading> {
  const ask = async (asked: Question, slid: number) => ({
    question: asked,
    trace: await server.trace(asked, CANDIDATES, signal),
    slid,
  });
  const most = windowOf(config);
  const text = question.text as string;
  // A token is a byte at least: only where so many might not fit are they counted first.
  if (new TextEncoder().encode(text).length + ADDED <= most) return ask(question, 0);
  const { ids } = await server.tokens(question.model, text, signal);
  const slide = () => ask({ ...question, text: ids.slice(-most) }, Math.max(0, ids.length - most));
  if (ids.length > most) return slide();
  try {
    return await ask(question, 0);
  } catch (error) {
    if (!(error instanceof ServerError) || error.code !== "context_length_exceeded") throw error;
    return slide(); // what is put before a text did not fit
  }
}

/** With a token added; where the window is full, it slides. */
export async function readOn(
  server: Server,
  asked: Question,
  ids: number[],
  slid: number,
  config: Config,
  signal: AbortSignal,
): Promise<Reading> {
  const window = ids.slice(-windowOf(config));
  const question = { ...asked, text: window };
  const trace = await server.trace(question, CANDIDATES, signal);
  return { question, trace, slid: slid + ids.length - window.length };
}

/** With these changes in force; those that do not fit the text or the model any more are left out. */
export async function readChanged(
  edits: Edit[],
  config: Config,
  ask: (edits: Edit[]) => Promise<Reading>,
): Promise<Reading> {
  try {
    return await ask(edits);
  } catch (error) {
    if (!(error instanceof ServerError) || error.status !== 400 || edits.length === 0) throw error;
    const plain = await ask([]);
    const left = fitting(edits, config, plain.trace.ids.length);
    const same = JSON.stringify(left) === JSON.stringify(edits);
    return left.length === 0 || same ? plain : await ask(left).catch(() => plain);
  }
}
