/** The numbers shown in the views, as tables for export. */

import type {
  Attribution,
  HeadScores,
  LensToken,
  RunStep,
  SensesResponse,
  WhyResponse,
} from "../engine/types";
import type { Table } from "../drawing/export";
import { HEAD_KINDS, type HeadIndex } from "../model/headKinds";

export function differencesTable(differing: { site: string; distance: number }[]): Table {
  return {
    columns: ["site", "distance"],
    rows: differing.map(({ site, distance }) => [site, distance]),
  };
}

/** The score of each head for each kind. */
export function headScoresTable(heads: readonly HeadIndex[], { kinds }: HeadScores): Table {
  return {
    columns: ["block", "head", ...HEAD_KINDS],
    rows: heads.map(({ block, head }) => [
      block,
      head,
      ...HEAD_KINDS.map((kind) => kinds[kind]?.[block]?.[head] ?? null),
    ]),
  };
}

/** Every part of a logit. A head is followed by the contribution of each token, if known. */
export function attributionTable({ parts, heads }: Attribution, tokens: string[]): Table {
  const contributions = new Map(
    heads.map(({ block, head, values }) => [`block.${block}.head.${head}.output`, values]),
  );
  return {
    columns: ["part", "source", "token", "value"],
    rows: parts.flatMap(({ name, value }) => [
      [name, null, null, value],
      ...(contributions.get(name) ?? []).map((contribution, source) => [
        name,
        source,
        tokens[source]!,
        contribution,
      ]),
    ]),
  };
}

/** The parts of a score on both sides. Those of either side add up to the score. */
export function scoreTable(why: WhyResponse): Table {
  return {
    columns: ["side", "part", "value"],
    rows: (["key", "query"] as const).flatMap((side) =>
      why[side].map(({ name, value }) => [side, name, value]),
    ),
  };
}

/** The logit lens at each block and position. */
export function lensTable(lens: LensToken[][], tokens: string[], first: number): Table {
  return {
    columns: ["block", "position", "token", "prediction", "probability", "chosen"],
    rows: lens.flatMap((row, block) =>
      row.map(({ text, probability, chosen }, i) => {
        return [block, first + i, tokens[first + i]!, text, probability, chosen];
      }),
    ),
  };
}

/** Each occurrence at each stage: its position on the map and its cosine similarity to the first one. */
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
    columns: ["stage", "token", "cosine"],
    rows: lists.flatMap(({ stage, neighbors }) => neighbors.map(({ text, cosine }) => [stage, text, cosine])),
  };
}

export function stepsTable(runs: { name: string; steps: RunStep[] }[]): Table {
  return {
    columns: ["run", "step", "loss", "smoothed", "validation", "learning_rate", "tokens"],
    rows: runs.flatMap(({ name, steps }) =>
      steps.map(({ step, loss, smoothed, validation, learning_rate, tokens }) => {
        return [name, step, loss, smoothed, validation, learning_rate, tokens];
      }),
    ),
  };
}
