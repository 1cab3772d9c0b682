/** The languages that the page speaks. A third one is one more file and one more line. */

import { de } from "./de";
import { en, type Messages } from "./en";

export const LANGUAGES: Record<string, Messages> = { en, de };

/** The first of those that someone reads, else English. */
export function chooseLanguage(kept: string | null, read: readonly string[]): string {
  const wanted = kept === null ? read : [kept, ...read];
  return wanted.map((each) => each.split("-")[0]!).find((each) => each in LANGUAGES) ?? "en";
}
