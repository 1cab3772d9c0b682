/** Runs a text through a model. A text longer than the context window is cut to its last tokens. */

import { applicableEdits } from "../model/edits";
import { type ApiClient, ApiError } from "./client";
import type { Config, Edit, ModelInput, TraceResponse } from "./types";

const CANDIDATES = 1000; // next tokens to request
const MAX_TOKENS = 4096; // per request, the server's limit
const MAX_SPECIAL_TOKENS = 8; // how many a tokenizer may add before a text

export interface TraceResult {
  input: ModelInput;
  trace: TraceResponse;
  dropped: number; // how many tokens no longer fit in the context window
}

const windowSize = (config: Config) => Math.min(config.n_context, MAX_TOKENS);

export async function fetchTrace(
  api: ApiClient,
  input: ModelInput,
  config: Config,
  signal: AbortSignal,
): Promise<TraceResult> {
  const request = async (input: ModelInput, dropped: number) => ({
    input,
    trace: await api.trace(input, CANDIDATES, signal),
    dropped,
  });
  const size = windowSize(config);
  const text = input.text as string;
  // A token is at least one byte, so a short text fits without counting its tokens.
  if (new TextEncoder().encode(text).length + MAX_SPECIAL_TOKENS <= size) return request(input, 0);
  const { ids } = await api.tokens(input.model, text, signal);
  const requestWindow = () => request({ ...input, text: ids.slice(-size) }, Math.max(0, ids.length - size));
  if (ids.length > size) return requestWindow();
  try {
    return await request(input, 0);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "context_length_exceeded") throw error;
    return requestWindow(); // the special tokens made the text exceed the window
  }
}

/** Runs token ids, the last of which was just appended. If the window is full, the first ones are dropped. */
export async function fetchAppended(
  api: ApiClient,
  { model, edits }: Pick<ModelInput, "model" | "edits">,
  ids: number[],
  dropped: number,
  config: Config,
  signal: AbortSignal,
): Promise<TraceResult> {
  const text = ids.slice(-windowSize(config));
  const input = { model, text, edits };
  const trace = await api.trace(input, CANDIDATES, signal);
  return { input, trace, dropped: dropped + ids.length - text.length };
}

/** Runs a request with edits; edits that no longer apply to the text or the model are left out. */
export async function fetchWithEdits(
  edits: Edit[],
  config: Config,
  request: (edits: Edit[]) => Promise<TraceResult>,
): Promise<TraceResult> {
  try {
    return await request(edits);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400 || edits.length === 0) throw error;
    const plain = await request([]);
    const remaining = applicableEdits(edits, config, plain.trace.ids.length);
    const tried = remaining.map((edit) =>
      request([edit]).then(
        () => [edit],
        () => [],
      ),
    );
    const working = (await Promise.all(tried)).flat();
    return working.length === 0 ? plain : await request(working).catch(() => plain);
  }
}
