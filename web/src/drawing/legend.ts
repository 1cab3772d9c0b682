/** What colors say in numbers: what the strongest stands for, on either side. */

import type { Role } from "../model/sites";
import { colorScale, type Theme } from "./colors";
import { localizeDecimal, short } from "../messages/format.svelte";
import type { Pen } from "./pen";

export interface ColorRange {
  peak: number; // what the strongest color stands for
  over: boolean; // some numbers are larger still
  under: boolean; // some are further below zero
  negative: boolean; // some are below zero
}

/** Of some numbers, where this one has the strongest color. */
export function colorRangeOf(values: ArrayLike<number>, peak: number): ColorRange {
  let [over, under, negative] = [false, false, false];
  const limit = peak * 1.0001; // rounding is none
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isFinite(value)) continue;
    if (value < 0) negative = true;
    if (value > limit) over = true;
    if (value < -limit) under = true;
  }
  return { peak, over, under, negative };
}

/** Of several together. */
export function mergeColorRanges(peak: number, all: ColorRange[]): ColorRange {
  return {
    peak,
    over: all.some(({ over }) => over),
    under: all.some(({ under }) => under),
    negative: all.some(({ negative }) => negative),
  };
}

/** From 0 to 1, as shares go. */
export const UNIT_RANGE: ColorRange = { peak: 1, over: false, under: false, negative: false };

/** The numbers at both ends. */
export function rangeLabels({ peak, over, under, negative }: ColorRange): [string, string] {
  const size = peak > 0 && peak < 0.095 ? localizeDecimal(peak.toPrecision(1)) : short(peak);
  const least = under ? `≤ −${size}` : `−${size}`;
  return [negative ? least : "0", over ? `≥ ${size}` : size];
}

const HALF = [0.25, 0.5, 0.75, 1];

/** From the lower end to the upper one. */
export function legendSteps({ negative }: ColorRange): number[] {
  return [...(negative ? HALF.toReversed().map((step) => -step) : []), 0, ...HALF];
}

const STEP = 14; // pixels

/** The isSameCell in a picture. */
export function paintLegend(
  pen: Pen,
  x: number,
  y: number,
  ends: ColorRange,
  role: Role,
  theme: Theme,
  ink: string,
): void {
  const scale = colorScale(role, theme);
  const [least, most] = rangeLabels(ends);
  const steps = legendSteps(ends);
  const start = x + 7 * least.length + 6;
  const style = { size: 11, fill: ink };
  pen.text(start - 6, y, least, { ...style, anchor: "end" });
  steps.forEach((step, i) => pen.rect(start + i * STEP, y - 6, STEP, 12, scale(step, 1)));
  pen.text(start + steps.length * STEP + 6, y, most, style);
}
