/** What there is where no model is: in a saved file, or in a published folder. */

import type { Place, ViewName } from "../state/location";
import type { Question } from "./client";

/** What a saved file or a published folder holds of a model: nothing else can be gone to, nothing new goes through. */
export interface Kept {
  flow: boolean;
  views: readonly ViewName[];
  texts: readonly string[]; // to choose among
  words: (question: Question) => readonly number[]; // next words that can be asked about
  holds: (place: Pick<Place, "block" | "head" | "part">) => boolean;
  knows: (path: string, asked: Question) => boolean; // whether a question has an answer
  compares: (site: string) => boolean; // whether the site of both texts is there
}
