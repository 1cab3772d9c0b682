/** A report as the view shows it: key figures, bars, and the tables and charts that labs have too. */

import type { LabLines, LabResponse, Schemas } from "../engine/types";
import type { Messages } from "../messages/en";
import { count, fixed, locale, percent } from "../messages/format.svelte";

export type Report = Schemas["ReportResponse"];
export type ReportPart = LabResponse["parts"][number];

export interface KeyFigure {
  name: keyof Messages["report"]["figures"];
  shown: string;
  note: string;
}

/** The main figures, as many as are known. */
export function keyFigures(report: Report, { report: words, labs }: Messages): KeyFigure[] {
  const { notes } = words;
  const { loss, calibration, copied, minimal_pairs: pairs, overfits, evidence } = report;
  const perplexity = Math.exp(loss ?? NaN);
  const found: KeyFigure[] = [
    { name: "bits", shown: fixed(report.bits_per_byte ?? NaN, 4), note: notes.bits },
    { name: "loss", shown: fixed(loss ?? NaN, 4), note: notes.loss },
    { name: "perplexity", shown: fixed(perplexity, 2), note: notes.perplexity },
    { name: "right", shown: percent(calibration.accuracy, 1), note: notes.right },
    { name: "calibration", shown: percent(calibration.expected_error, 1), note: notes.calibration },
  ];
  if (copied) {
    const note = notes.copied(percent(copied.people.share, 1));
    found.push({ name: "copied", shown: percent(copied.model.share, 1), note });
  }
  if (pairs?.[0]) {
    const { accuracy, interval } = pairs[0];
    const note = notes.pairs(percent(interval[0]!, 1), percent(interval[1]!, 1));
    found.push({ name: "pairs", shown: percent(accuracy, 1), note });
  }
  if (overfits !== null) {
    const gap = evidence?.gap ?? null;
    const note = gap === null ? "" : notes.overfits(percent(Math.abs(gap)), gap > 0);
    found.push({ name: "overfits", shown: overfits ? labs.yes : labs.no, note });
  }
  return found;
}

export interface ReportBar {
  name: string;
  value: number;
  isOwn: boolean; // the model's
}

/** Bits per byte of the model, and of others on the same text. */
export function bitsBars({ model, bits_per_byte, baselines, compressed }: Report): ReportBar[] {
  return [
    { name: model, value: bits_per_byte ?? NaN, isOwn: true },
    ...baselines.map(({ name, bits_per_byte }) => ({ name, value: bits_per_byte ?? NaN, isOwn: false })),
    ...Object.entries(compressed).map(([name, value]) => ({ name, value: value ?? NaN, isOwn: false })),
  ];
}

const number = (value: number) => count(value, locale.language);
const MOST_POINTS = 24; // of the training curve

function lines(part: Pick<LabLines, "name" | "across" | "up" | "x" | "lines" | "logarithmic">): LabLines {
  return { ...part, kind: "lines", spread: {} };
}

function table(name: string, columns: string[], rows: [string, ...(string | number | null)[]][]): ReportPart {
  const values = rows.map(([, ...cells]) => cells);
  return { kind: "table", name, rows: rows.map(([first]) => first), columns, values, shaded: false };
}

/** How well the model predicts: by position, by frequency, and whether its probabilities are right. */
export function predictionParts(report: Report, { report: words }: Messages): ReportPart[] {
  const { by_position, by_frequency, calibration, counted_in_training } = report;
  return [
    lines({
      name: "Loss by position in the window",
      across: "tokens read",
      up: "nats per token",
      x: by_position.map(([tokens]) => tokens!),
      lines: { [report.model]: by_position.map(([, loss]) => loss ?? null) },
      logarithmic: true,
    }),
    lines({
      name: "Calibration",
      across: "probability of the most likely token",
      up: "how often it is right",
      x: calibration.bins.map(({ confidence }) => Number(confidence.toFixed(2))),
      lines: {
        [report.model]: calibration.bins.map(({ accuracy }) => accuracy),
        "as often as its probability says": calibration.bins.map(({ confidence }) => confidence),
      },
      logarithmic: false,
    }),
    table(
      words.frequency(counted_in_training),
      ["tokens", "nats per token"],
      by_frequency.map(({ least, most, tokens, loss }) => [
        words.range(number(least), most === null ? null : number(most)),
        number(tokens),
        fixed(loss ?? NaN, 4),
      ]),
    ),
  ];
}

/** What the model knows, and what its heads do. */
export function knowledgeParts({ minimal_pairs: pairs, heads }: Report, { change }: Messages): ReportPart[] {
  const found: ReportPart[] = [];
  if (pairs)
    found.push(
      table(
        "Minimal pairs",
        ["items", "right", "95% interval"],
        pairs.map(({ category, items, accuracy, interval }) => [
          category ?? "all",
          items,
          percent(accuracy, 1),
          interval.map((end) => percent(end, 1)).join(" – "),
        ]),
      ),
    );
  if (heads)
    found.push(
      table(
        "Heads by role",
        ["best head", "highest score", "uniform attention"],
        Object.entries(heads).map(([role, { scores, uniform }]) => {
          const best = bestHead(scores);
          return [
            role,
            uniform === null || best.score > uniform ? change.head(best.block, best.head) : null,
            fixed(best.score, 2),
            uniform === null ? null : fixed(uniform, 2),
          ];
        }),
      ),
    );
  return found;
}

/** The first head with the highest score. */
export function bestHead(scores: (number | null)[][]): { block: number; head: number; score: number } {
  const all = scores.flatMap((row, block) =>
    row.map((score, head) => ({ block, head, score: score ?? NaN })),
  );
  return all.reduce((best, each) => (each.score > best.score ? each : best));
}

/** The run's curve and settings, if the model is from a run. */
export function runParts({ run }: Report): ReportPart[] {
  if (run === null) return [];
  const every = Math.ceil(run.training.length / MOST_POINTS);
  const training = run.training.filter((_, i) => i % every === 0 || i === run.training.length - 1);
  const x = [...new Set([...training, ...run.validation].map(([step]) => step!))].sort((a, b) => a - b);
  const at = (curve: (number | null)[][]) =>
    x.map((step) => curve.find(([each]) => each === step)?.[1] ?? null);
  const curves = { training: at(training), validation: at(run.validation) };
  const settings = Object.entries(run.settings).map(([name, value]): [string, string] => [
    name,
    typeof value === "number" && Number.isInteger(value) ? number(value) : `${value ?? ""}`,
  ]);
  const loss = lines({
    name: "Loss of the run",
    across: "steps",
    up: "nats per token",
    x,
    lines: curves,
    logarithmic: true,
  });
  return [...(x.length > 0 ? [loss] : []), table("Settings", [""], settings)];
}
