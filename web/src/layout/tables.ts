/** What the views tell in words and numbers, as tables to take away. */

import type { Attribution, LensToken, RunStep, SensesResponse, WhyResponse } from "../engine/types";
import type { Table } from "../drawing/export";

export function differencesTable(differing: { site: string; distance: number }[]): Table {
  return {
    columns: ["site", "distance"],
    rows: differing.map(({ site, distance }) => [site, distance]),
  };
}

/** Every part of a logit; and of heads, as far as they were asked for, what each token gave. */
export function attributionTable({ parts, heads }: Attribution, tokens: string[]): Table {
  const given = new Map(heads.map((each) => [`block.${each.block}.head.${each.head}.output`, each.values]));
  return {
    columns: ["part", "source", "token", "value"],
    rows: parts.flatMap(({ name, value }) => [
      [name, null, null, value],
      ...(given.get(name) ?? []).map((each, source) => [name, source, tokens[source]!, each]),
    ]),
  };
}

/** What all pairs together have that are not listed. */
export function otherPairs({ score, pairs }: WhyResponse): number {
  return pairs.reduce((left, { value }) => left - (value ?? NaN), score ?? NaN);
}

/** The strongest pairs and, in one row, the others: together they are the score. */
export function pairsTable(why: WhyResponse): Table {
  return {
    columns: ["query", "key", "value"],
    rows: [
      ...why.pairs.map(({ query, key, value }) => [query, key, value]),
      ["others", "others", otherPairs(why)],
    ],
  };
}

/** What each block would say, at each position from the first that was asked for. */
export function lensTable(said: LensToken[][], tokens: string[], first: number): Table {
  return {
    columns: ["block", "position", "token", "word", "probability", "chosen"],
    rows: said.flatMap((row, block) =>
      row.map(({ text, probability, chosen }, i) => {
        return [block, first + i, tokens[first + i]!, text, probability, chosen];
      }),
    ),
  };
}

/** Each occurrence at each stage: its place on the map, and how alike it is to the first one. */
export function sensesTable(
  { stages, occurrences, points, cosines }: SensesResponse,
  sentences: string[],
): Table {
  return {
    columns: ["stage", "occurrence", "sentence", "position", "piece", "x", "y", "cosine"],
    rows: stages.flatMap((stage, s) =>
      occurrences.map(({ sentence, position, piece }, i) => {
        const [x, y] = points[s]![i]!;
        return [stage, i, sentences[sentence]!, position, piece, x!, y!, cosines[s]![0]![i]!];
      }),
    ),
  };
}

export function neighborsTable(
  lists: { stage: string; neighbors: { text: string; cosine: number | null }[] }[],
): Table {
  return {
    columns: ["stage", "word", "cosine"],
    rows: lists.flatMap(({ stage, neighbors }) => neighbors.map(({ text, cosine }) => [stage, text, cosine])),
  };
}

export function stepsTable(runs: { name: string; steps: RunStep[] }[]): Table {
  return {
    columns: ["run", "step", "loss", "smoothed", "validation", "lr_scale", "tokens"],
    rows: runs.flatMap(({ name, steps }) =>
      steps.map(({ step, loss, smoothed, validation, lr_scale, tokens }) => {
        return [name, step, loss, smoothed, validation, lr_scale, tokens];
      }),
    ),
  };
}
