/** The figures of lecture 002. */

import type { LectureFigure } from "../figures";
import FeatureVectors from "./FeatureVectors.svelte";
import LoopsAndMatrices from "./LoopsAndMatrices.svelte";
import MainTask from "./MainTask.svelte";
import MaskAndSoftmax from "./MaskAndSoftmax.svelte";
import OneTokenLoss from "./OneTokenLoss.svelte";
import QueriesAndKeys from "./QueriesAndKeys.svelte";
import Relationship from "./Relationship.svelte";
import SkipGram from "./SkipGram.svelte";
import SlidingWindow from "./SlidingWindow.svelte";
import Values from "./Values.svelte";
import WidthSweep from "./WidthSweep.svelte";

export const FIGURES_002: Record<string, LectureFigure> = {
  "002.1": WidthSweep,
  "002.2": SkipGram,
  "002.3": MainTask,
  "002.4": SlidingWindow,
  "002.5": FeatureVectors,
  "002.6": QueriesAndKeys,
  "002.7": MaskAndSoftmax,
  "002.8": Values,
  "002.9": LoopsAndMatrices,
  "002.10": Relationship,
  "002.11": OneTokenLoss,
};
