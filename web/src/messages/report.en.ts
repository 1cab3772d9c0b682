/** The texts of the report view in English. */

import type { Schemas } from "../engine/types";

type Advice = Schemas["ReportAdvice"];

export const report = {
  title: (model: string) => `How good is ${model}?`,
  description:
    "Measures the model on a text that it was not trained on: how well it predicts, what it writes, how much of that it copies, and what would help most.",
  text: "Text",
  textHint:
    "A text that the model was not trained on. If left empty: the text that its run held out or, for the built-in model, new stories.",
  run: "Report",
  again: "Report again",
  working: "Measuring…",
  takes: "This takes between a few seconds and a few minutes.",
  waiting: "Another report is being made. This one starts when that one is finished.",
  /** What is being done, in words; `doing` is the server's English text. */
  doing: (doing: string) => `${doing[0]!.toUpperCase()}${doing.slice(1)}…`,
  measured: {
    "held out": (tokens: string) => `Measured on ${tokens} tokens of the text that its run held out.`,
    "new stories": (tokens: string) =>
      `Measured on ${tokens} tokens of new stories from the grammar that it was trained on.`,
    given: (tokens: string) => `Measured on ${tokens} tokens of the text below.`,
  },
  file: (command: string) => `As a file, with comparisons of several models: ${command}`,
  figures: {
    bits: "bits per byte",
    loss: "loss",
    perplexity: "perplexity",
    right: "next token right",
    calibration: "calibration error",
    copied: "copied",
    pairs: "minimal pairs right",
    overfits: "overfits",
  },
  notes: {
    bits: "lower is better",
    loss: "nats per token",
    perplexity: "equally likely tokens",
    right: "predicted as most likely",
    calibration: "gap between probability and accuracy",
    copied: (share: string) => `held-out text: ${share}`,
    pairs: (low: string, high: string) => `95% interval ${low} to ${high}; chance 50%`,
    overfits: (gap: string, isLower: boolean) =>
      `its loss on its training text is ${gap} ${isLower ? "lower" : "higher"}`,
  },
  help: "What would help most",
  unknown: "Unknown: this requires a run whose training text is still available.",
  nothing: "It does not overfit, and its losses point to nothing that would clearly help.",
  /** In English, the server's own. */
  advice: ((advice) => advice) as (advice: Advice, evidence: Schemas["ReportEvidence"]) => Advice,
  bits: "Bits per byte, compared with others on the same text",
  headers: (bytes: string) =>
    `The text has only ${bytes} bytes, so the headers of gzip and xz are a large part of their figures.`,
  frequency: (inTraining: boolean) =>
    `Loss by how often the token occurs in ${inTraining ? "the training text" : "this text"}`,
  range: (least: string, most: string | null) =>
    most === null ? `${least} or more` : least === most ? least : `${least} to ${most}`,
  surprises: "Largest surprises",
  expected: (token: string, probability: string) => `expected ${token} (${probability})`,
  passage: "Around the largest surprise",
  passageHint: "The redder a token, the less likely the model found it.",
  samples: "What it writes",
  temperature: (temperature: string) => `Temperature ${temperature}`,
  longestCopy: "The longest copied passage",
  /** Translations of headings, keyed by their English text. Empty in English. */
  headings: {} as Record<string, string>,
};
