/** The figures of lecture 001. */

import type { LectureFigure } from "../figures";
import KeysAndQuery from "./KeysAndQuery.svelte";
import LanguageModeling from "./LanguageModeling.svelte";
import LinearAttention from "./LinearAttention.svelte";
import LongSequences from "./LongSequences.svelte";
import MaskAndPosition from "./MaskAndPosition.svelte";
import RunningExample from "./RunningExample.svelte";
import SelfAttention from "./SelfAttention.svelte";
import SharedApi from "./SharedApi.svelte";
import TwoTokens from "./TwoTokens.svelte";

export const FIGURES_001: Record<string, LectureFigure> = {
  "001.1": LanguageModeling,
  "001.2": SharedApi,
  "001.3": RunningExample,
  "001.4": KeysAndQuery,
  "001.5": LongSequences,
  "001.6": LinearAttention,
  "001.7": SelfAttention,
  "001.8": TwoTokens,
  "001.9": MaskAndPosition,
};
