/** What labs give, laid out: scales of their lines, places on their maps, their numbers in words. */

import { scaleLinear, scaleLog } from "d3-scale";
import { localizeDecimal, short } from "../messages/format.svelte";
import type { LabResponse, LabLines, LabPoints } from "../engine/types";

export type Value = LabResponse["found"][number]["value"];

export function formatValue(value: Value, yes: string, no: string): string {
  if (value === null) return "–";
  if (typeof value === "boolean") return value ? yes : no;
  if (typeof value === "string") return value;
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 10 && size < 1e5) return short(value);
  return localizeDecimal(size < 1e-3 || size >= 1e5 ? value.toExponential(2) : value.toFixed(4));
}

/** A heading in the locale's language, where it is known; what stands for a * is a heading, or stays as it is. */
export function translateHeading(headings: Record<string, string> | undefined, heading: string): string {
  if (headings === undefined) return heading;
  if (Object.hasOwn(headings, heading)) return headings[heading]!;
  for (const [pattern, told] of Object.entries(headings)) {
    if (!pattern.includes("*")) continue;
    const plain = pattern.replaceAll(/[^\w\s*]/g, "\\$&");
    const found = new RegExp(`^${plain.replaceAll("*", "(.+)")}$`).exec(heading);
    if (found === null) continue;
    const parts = found.slice(1).map((part) => translateHeading(headings, part));
    return told.replaceAll("*", () => parts.shift()!);
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

/** Where every line goes, and the band around it. */
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
  const most = Math.max(2, Math.floor(width / 46));
  const step = Math.ceil(part.x.length / most);
  const paths = Object.entries(part.lines).map(([name, values]) => {
    const dots = values.flatMap((value, i): [number, number][] =>
      value === null ? [] : [[x(part.x[i]!), y(value)]],
    );
    const band = (part.spread[name] ?? []).map(([least, most], i) => ({
      x: x(part.x[i]!),
      least: y(least ?? 0),
      most: y(most ?? 0),
    }));
    const around = [
      ...band.map((each) => `${each.x},${each.most}`),
      ...band.toReversed().map((each) => `${each.x},${each.least}`),
    ];
    return { name, line: dots.map((dot) => dot.join(",")).join(" "), band: around.join(" "), dots };
  });
  return { x, y, xTicks: part.x.filter((_, i) => i % step === 0), yTicks: y.ticks(4), paths };
}

/** Where every point lies within a square, one scale for both directions. */
export function plotPoints(part: LabPoints, side: number, edge: number): { x: number; y: number }[] {
  const places = part.places.map(([x, y]) => [x ?? 0, y ?? 0] as const);
  const middle = [0, 1].map((k) => {
    const values = places.map((place) => place[k]!);
    return (Math.min(...values) + Math.max(...values)) / 2;
  });
  const most = Math.max(
    1e-9,
    ...places.flatMap((place) => place.map((value, k) => Math.abs(value - middle[k]!))),
  );
  const to = (value: number) => side / 2 + (value / most) * (side / 2 - edge);
  return places.map(([x, y]) => ({ x: to(x - middle[0]!), y: side - to(y - middle[1]!) }));
}
