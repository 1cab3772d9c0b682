/** The layout of lab results: scales for line plots, positions of points, and formatted values. */

import { scaleLinear, scaleLog } from "d3-scale";
import { localizeDecimal, short, tokenLabel } from "../messages/format.svelte";
import type { LabResponse, LabLines, LabPoints } from "../engine/types";

export type Value = LabResponse["findings"][number]["value"];

export function formatValue(value: Value, yes: string, no: string): string {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? yes : no;
  if (typeof value === "string") return value;
  if (Number.isInteger(value)) return String(value).replace("-", "−");
  const size = Math.abs(value);
  if (size >= 10 && size < 1e5) return short(value);
  const text = size < 1e-3 || size >= 1e5 ? value.toExponential(2) : value.toFixed(4);
  return localizeDecimal(text).replaceAll("-", "−");
}

/** Translates a heading. Each * in a pattern matches a part, which is itself translated if it has a translation. */
export function translateHeading(headings: Record<string, string> | undefined, heading: string): string {
  if (headings === undefined) return heading;
  if (Object.hasOwn(headings, heading)) return headings[heading]!;
  for (const [pattern, translation] of Object.entries(headings)) {
    if (!pattern.includes("*")) continue;
    const escaped = pattern.replaceAll(/[^\w\s*]/g, "\\$&");
    const match = new RegExp(`^${escaped.replaceAll("*", "(.+)")}$`).exec(heading);
    if (match === null) continue;
    const parts = match.slice(1).map((part) => translateHeading(headings, part));
    return translation.replaceAll("*", () => parts.shift()!);
  }
  return heading;
}

export interface LinePlot {
  x: (value: number) => number;
  y: (value: number) => number;
  xTicks: number[];
  yTicks: number[];
  paths: { name: string; line: string; band: string; dots: [number, number][] }[];
}

const TICK_WIDTH = 46; // pixels

/** The scales of a line chart, its lines, and the bands around them. */
export function plotLines(part: LabLines, width: number, height: number): LinePlot {
  const known = (values: (number | null)[]) => values.filter((value): value is number => value !== null);
  const all = [
    ...Object.values(part.lines).flatMap(known),
    ...Object.values(part.spread).flatMap((band) => band.flatMap(known)),
  ];
  const [low, high] = [Math.min(0, ...all), Math.max(...all, Math.min(0, ...all) + 1e-9)];
  const [first, last] = [Math.min(...part.x), Math.max(...part.x)];
  const logarithmic = part.logarithmic && first > 0 && last > first;
  const x = (logarithmic ? scaleLog().base(2) : scaleLinear()).domain([first, last]).range([0, width]);
  const y = scaleLinear([low, high], [height, 0]).nice(4);
  const xTicks: number[] = []; // as many as fit
  for (const value of part.x)
    if (xTicks.length === 0 || x(value) - x(xTicks.at(-1)!) >= TICK_WIDTH) xTicks.push(value);
  const paths = Object.entries(part.lines).map(([name, values]) => {
    const dots = values.flatMap((value, i): [number, number][] =>
      value === null ? [] : [[x(part.x[i]!), y(value)]],
    );
    const band = (part.spread[name] ?? []).map(([low, high], i) => ({
      x: x(part.x[i]!),
      low: y(low ?? 0),
      high: y(high ?? 0),
    }));
    const outline = [
      ...band.map((point) => `${point.x},${point.high}`),
      ...band.toReversed().map((point) => `${point.x},${point.low}`),
    ];
    return { name, line: dots.map((dot) => dot.join(",")).join(" "), band: outline.join(" "), dots };
  });
  return { x, y, xTicks, yTicks: y.ticks(4), paths };
}

/** The positions of points within a square, with the same scale for both axes. */
export function plotPoints(part: LabPoints, side: number, margin: number): { x: number; y: number }[] {
  const points = part.places.map(([x, y]) => [x ?? 0, y ?? 0] as const);
  const center = [0, 1].map((k) => {
    const values = points.map((point) => point[k]!);
    return (Math.min(...values) + Math.max(...values)) / 2;
  });
  const radius = Math.max(
    1e-9,
    ...points.flatMap((point) => point.map((value, k) => Math.abs(value - center[k]!))),
  );
  const scale = (value: number) => side / 2 + (value / radius) * (side / 2 - margin);
  return points.map(([x, y]) => ({ x: scale(x - center[0]!), y: side - scale(y - center[1]!) }));
}

/** The name of a row with its token as on the rest of the page: terminals show it in quotes or after its position. */
export function rowName(name: string): string {
  const quoted = /^(['"])(.*)\1$/s.exec(name);
  if (quoted) return tokenLabel(quoted[2]!);
  const placed = /^(\d+ )( .*)$/s.exec(name);
  return placed ? placed[1]! + tokenLabel(placed[2]!) : name;
}
