/** The page's languages. To add one, add a file of messages and list it here. */

import { de } from "./de";
import { en, type Messages } from "./en";

export const LANGUAGES: Record<string, Messages> = { en, de };

/** The language that the reader chose, or else that of the author of a saved file, or the first of the reader's
 * languages that the page has, or English. */
export function chooseLanguage(
  kept: string | null,
  read: readonly string[],
  author: string | null = null,
): string {
  const wanted = [kept, author, ...read].filter((each) => each !== null);
  return wanted.map((each) => each.split("-")[0]!).find((each) => each in LANGUAGES) ?? "en";
}
