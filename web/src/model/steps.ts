/** The parts of a model that can be opened, and their steps in the lectures' terms. */

import { parseSite } from "./sites";
import { WEIGHED } from "./derivation";
import { addsPositions } from "../engine/inspect/sites";
import { hasCap } from "../engine/model/attentionSteps";
import { isGated } from "../engine/model/feedforward";
import { isRotated } from "../engine/model/position";
import type { Config } from "../engine/types";

export type PartName = "embedding" | "norm" | "head" | "add" | "norm2" | "feedforward" | "add2" | "final";

export const STEPS = [
  "look up",
  "place",
  "enter",
  "read",
  "mean",
  "scale",
  "norm",
  "project",
  "level", // QK-norm
  "rotate",
  "compare",
  "divide",
  "cap", // of scores or logits
  "mask",
  "softmax",
  "weigh",
  "sum",
  "write",
  "gather",
  "post norm",
  "add",
  "expand",
  "activate",
  "contract",
  "score",
  "choose",
] as const;
export type StepName = (typeof STEPS)[number];

/** A step and its sites. The first site is shown by default. */
export interface Step {
  name: StepName;
  sites: string[];
}

export const PARTS: PartName[] = [
  "embedding",
  "norm",
  "head",
  "add",
  "norm2",
  "feedforward",
  "add2",
  "final",
];

export function stepsOf(part: PartName, config: Config, block: number, head: number): Step[] {
  const at = (name: string) => `block.${block}.${name}`;
  const of = (name: string) => at(`head.${head}.${name}`);
  switch (part) {
    case "embedding":
      return [
        step("look up", "embedding"),
        ...(addsPositions(config) ? [step("place", "position")] : []),
        step("enter", "block.0.input"),
      ];
    case "norm":
      return preNormSteps(config, at("normed"), at("input"));
    case "head":
      return [
        step("project", of("query_raw"), of("key_raw"), of("value")),
        ...(config.qk_norm ? [step("level", of("query_normed"), of("key_normed"))] : []),
        ...(isRotated(config, block) ? [step("rotate", of("query"), of("key"))] : []),
        step("compare", of("scores")),
        step("divide", of("scaled")),
        ...(hasCap(config.score_cap) ? [step("cap", of("capped"))] : []),
        ...(config.causal ? [step("mask", of("masked"))] : []),
        step("softmax", of("weights")),
        step("weigh", of(WEIGHED)),
        step("sum", of("mixed")),
        step("write", of("output")),
      ];
    case "add":
      return [
        step("gather", at("attention")),
        ...(config.post_norm ? [step("post norm", at("attention_normed"))] : []),
        ...(config.parallel ? [] : [step("add", at("middle"))]),
      ];
    case "norm2":
      return preNormSteps(config, at("normed2"), at(config.parallel ? "input" : "middle"));
    case "feedforward":
      return [
        isGated(config)
          ? step("expand", at("hidden_gate"), at("hidden_up"))
          : step("expand", at("hidden_raw")),
        step("activate", at("hidden")),
        step("contract", at("feedforward")),
        ...(config.post_norm ? [step("post norm", at("feedforward_normed"))] : []),
      ];
    case "add2":
      return [step("add", at("output"))];
    case "final":
      return [
        ...normSteps(config, "final", `block.${config.n_block - 1}.output`),
        ...(hasCap(config.logit_cap)
          ? [step("score", "logits_raw"), step("cap", "logits")]
          : [step("score", "logits")]),
        step("choose", "probabilities"),
      ];
  }
}

/** The step that a part opens on: a norm on the vectors, and not on the mean that is subtracted from them. */
export function openingStep(part: PartName): StepName | 0 {
  return part === "norm" || part === "norm2" || part === "final" ? "norm" : 0;
}

/** The site that is shown in place of one with the same numbers. */
export function shownSite(site: string, config: Config): string {
  const group = config.n_head / config.n_kv_head;
  return site
    .replace(/kv_head\.(\d+)/, (_, k: string) => `head.${Number(k) * group}`)
    .replace(/block\.(\d+)\.head\.\d+\.(query|key)$/, (site, block: string) =>
      isRotated(config, Number(block)) ? site : `${site}_${config.qk_norm ? "normed" : "raw"}`,
    );
}

/** The step that shows a site, or null. */
export function findStep(
  site: string,
  config: Config,
): { part: PartName; block: number; head: number; step: number; site: number } | null {
  const name = shownSite(site, config);
  const { block, head } = parseSite(name);
  const at = { block: block ?? 0, head: head ?? 0 };
  for (const part of PARTS) {
    const steps = stepsOf(part, config, at.block, at.head);
    const step = steps.findIndex(({ sites }) => sites.includes(name));
    if (step >= 0) return { part, ...at, step, site: steps[step]!.sites.indexOf(name) };
  }
  return null;
}

/** The norm before one half of a block; without one, that half reads the residual stream itself. */
function preNormSteps(config: Config, name: string, source: string): Step[] {
  return config.pre_norm ? normSteps(config, name, source) : [step("read", name)];
}

/** The steps of a norm. The last one also shows the vectors before it. */
function normSteps(config: Config, name: string, source: string): Step[] {
  const mean = config.norm === "layer" ? [step("mean", `${name}.mean`)] : [];
  return [...mean, step("scale", `${name}.scale`), step("norm", name, source)];
}

function step(name: StepName, ...sites: string[]): Step {
  return { name, sites };
}
