/** Errors as the page reports them. */

import type { Messages } from "../messages/en";
import { ApiError } from "./client";

export type Values = Record<string, string | number>;

export interface Problem {
  message: string; // in English, as the server sends it
  status: number; // 0 if the server could not be reached, -1 if the error is not the server's
  code: string;
  values: Values; // the values in the message
}

export function toProblem(reason: unknown): Problem {
  if (reason instanceof ApiError) return reason;
  const message = reason instanceof Error ? reason.message : String(reason);
  return { message, status: -1, code: "", values: {} };
}

/** Whether the same request may succeed later: the server is busy, out of reach, or had an error of its own. */
export function mayRecover({ status }: Problem): boolean {
  return status === 0 || status === 429 || status >= 500;
}

/** The problem in the reader's language, or the server's message if there is no translation. */
export function describeProblem(
  words: Messages,
  { code, values, message }: { code?: string | null; values?: Values; message: string },
): string {
  return words.refusals[code ?? ""]?.(values ?? {}) ?? message;
}
