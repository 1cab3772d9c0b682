/** How the prediction changes if a token is left out of the text. */

import type { Matrix } from "../model/matrix";
import type { ApiClient } from "./client";
import type { ModelInput } from "./types";

export interface LeftOut {
  before: number; // the token's log-probability after the whole text
  after: number[]; // after the text without each of its tokens
}

/** Runs the text without each of its tokens in turn. `report` receives the number of texts that were run. */
export async function leaveOut(
  api: Pick<ApiClient, "read">,
  { model }: ModelInput,
  ids: readonly number[],
  token: number,
  signal: AbortSignal,
  report: (done: number) => void,
): Promise<LeftOut> {
  const read = async (text: number[]) => {
    const rows: [number, number] = [text.length - 1, text.length];
    const [logits] = await api.read({ model, text, edits: [] }, [{ name: "logits", rows }], signal);
    return logProbability(logits!, token);
  };
  const before = await read([...ids]);
  const after: number[] = [];
  for (const i of ids.keys()) {
    after.push(await read(ids.toSpliced(i, 1)));
    report(after.length);
  }
  return { before, after };
}

/** The logarithm of a token's softmax in one row of logits. */
function logProbability({ values }: Matrix, token: number): number {
  const largest = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const sum = values.reduce((sum, value) => sum + Math.exp(value - largest), 0);
  return values[token]! - largest - Math.log(sum);
}

/** The index of the token before the last whose absence changes the prediction most. */
export function decidingToken({ before, after }: LeftOut): number {
  const sizes = after.slice(0, -1).map((value) => Math.abs(value - before));
  return sizes.indexOf(Math.max(...sizes));
}
