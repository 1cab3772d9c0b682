/** The figures of lecture 000. */

import type { LectureFigure } from "../figures";
import Block from "./Block.svelte";
import Dividing from "./Dividing.svelte";
import ManyHeads from "./ManyHeads.svelte";
import ResidualStream from "./ResidualStream.svelte";
import SelectiveIntegration from "./SelectiveIntegration.svelte";
import SimplestAttention from "./SimplestAttention.svelte";
import Stack from "./Stack.svelte";
import StaticAndContextual from "./StaticAndContextual.svelte";
import StepByStep from "./StepByStep.svelte";
import ThreeRoles from "./ThreeRoles.svelte";

export const FIGURES_000: Record<string, LectureFigure> = {
  "000.1": StaticAndContextual,
  "000.2": SelectiveIntegration,
  "000.3": SimplestAttention,
  "000.4": ThreeRoles,
  "000.5": Dividing,
  "000.6": StepByStep,
  "000.7": ManyHeads,
  "000.8": Block,
  "000.9": Stack,
  "000.10": ResidualStream,
};
