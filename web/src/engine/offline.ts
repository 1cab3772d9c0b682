/** Stand-ins for a model when there is no server: a saved file or a published folder. */

import type { PartName } from "../model/steps";
import type { ViewName } from "../state/location";
import type { ModelInput } from "./types";

/** Precomputed responses. Nothing else can be shown, and no new text can be run. */
export interface OfflineSource {
  hasFlow: boolean;
  views: readonly ViewName[];
  texts: readonly string[]; // that the reader can choose from
  opening: { block: number; head: number; row: number } | null; // the place chosen for the first text
  targets: (input: ModelInput) => readonly number[]; // ids of the tokens that can be explained
  canShow: (place: { block: number; head: number; part: PartName }) => boolean;
  canAnswer: (path: string, request: ModelInput) => boolean;
  canCompare: (site: string) => boolean; // whether the site was saved for both texts
}
