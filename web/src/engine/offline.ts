/** What replaces a model where there is no server: a saved file or a published folder. */

import type { PartName } from "../model/steps";
import type { ViewName } from "../state/location";
import type { ModelInput } from "./types";

/** Answers recorded beforehand. Nothing else can be shown, and no new text can be run. */
export interface OfflineSource {
  hasFlow: boolean;
  views: readonly ViewName[];
  texts: readonly string[]; // that the reader can choose between
  nextWords: (input: ModelInput) => readonly number[]; // token ids that can be asked about
  canShow: (place: { block: number; head: number; part: PartName }) => boolean;
  canAnswer: (path: string, request: ModelInput) => boolean;
  canCompare: (site: string) => boolean; // whether the site was saved for both texts
}
