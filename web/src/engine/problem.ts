/** What went wrong, and how it is said. */

import type { Messages } from "../messages/en";
import { ServerError } from "./client";

export type Values = Record<string, string | number>;

export interface Problem {
  message: string; // in the server's own words
  status: number; // 0 where the server could not be reached, -1 where it was not the server
  code: string;
  values: Values; // what the message is made of
}

export function problemOf(reason: unknown): Problem {
  if (reason instanceof ServerError) return reason;
  const message = reason instanceof Error ? reason.message : String(reason);
  return { message, status: -1, code: "", values: {} };
}

/** In the reader's language; where the page has no words for it, in the server's. */
export function tell(
  words: Messages,
  { code, values, message }: { code?: string | null; values?: Values; message: string },
): string {
  return words.refusals[code ?? ""]?.(values ?? {}) ?? message;
}
