/** The legend: which numbers the colors stand for. */

import type { Role } from "../model/sites";
import { colorScale, PALETTES, type Theme } from "./colors";
import { estimateWidth } from "./labels";
import { localizeDecimal, short } from "../messages/format.svelte";
import type { Pen } from "./pen";

export interface ColorRange {
  peak: number; // the number with the strongest color
  over: boolean; // whether some numbers are larger
  under: boolean; // whether some numbers are below −peak
  negative: boolean; // whether some numbers are below zero
}

/** The color range of these numbers. */
export function colorRangeOf(values: ArrayLike<number>, peak: number): ColorRange {
  let [over, under, negative] = [false, false, false];
  const limit = peak * 1.0001; // tolerates rounding
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isFinite(value)) continue;
    if (value < 0) negative = true;
    if (value > limit) over = true;
    if (value < -limit) under = true;
  }
  return { peak, over, under, negative };
}

/** The color range of several matrices with a common peak. */
export function mergeColorRanges(peak: number, ranges: ColorRange[]): ColorRange {
  return {
    peak,
    over: ranges.some(({ over }) => over),
    under: ranges.some(({ under }) => under),
    negative: ranges.some(({ negative }) => negative),
  };
}

/** The range of probabilities. */
export const UNIT_RANGE: ColorRange = { peak: 1, over: false, under: false, negative: false };

/** The labels at both ends of the range. */
export function rangeLabels({ peak, over, under, negative }: ColorRange): [string, string] {
  const size = peak > 0 && peak < 0.095 ? localizeDecimal(peak.toPrecision(1)) : short(peak);
  const low = under ? `≤ −${size}` : `−${size}`;
  return [negative ? low : "0", over ? `≥ ${size}` : size];
}

const POSITIVE_STEPS = [0.25, 0.5, 0.75, 1];
export const SIGNED_STEPS = [...POSITIVE_STEPS.toReversed().map((step) => -step), 0, ...POSITIVE_STEPS];

/** The relative values of the legend's steps, in ascending order. */
export function legendSteps({ negative }: ColorRange): number[] {
  return negative ? SIGNED_STEPS : [0, ...POSITIVE_STEPS];
}

const STEP_WIDTH = 14; // pixels

/** The legend in a figure. Returns where it ends. */
export function paintLegend(
  pen: Pen,
  x: number,
  y: number,
  range: ColorRange,
  role: Role,
  theme: Theme,
  ink: string,
  masked?: string, // the name of the masked cells, if there are any
): number {
  const scale = colorScale(role, theme);
  const [low, high] = rangeLabels(range);
  const steps = legendSteps(range);
  const start = x + estimateWidth(low, 11) + 6;
  const style = { size: 11, fill: ink };
  pen.text(start - 6, y, low, { ...style, anchor: "end" });
  steps.forEach((step, i) => pen.rect(start + i * STEP_WIDTH, y - 6, STEP_WIDTH, 12, scale(step, 1)));
  const end = start + steps.length * STEP_WIDTH + 6;
  pen.text(end, y, high, style);
  const highEnd = end + estimateWidth(high, style.size);
  if (masked === undefined) return highEnd;
  const sample = highEnd + 16;
  const maskedStart = sample + 1.5 * STEP_WIDTH + 6;
  pen.hatch(sample, y - 6, 1.5 * STEP_WIDTH, 12, PALETTES[theme].masked);
  pen.text(maskedStart, y, masked, style);
  return maskedStart + estimateWidth(masked, style.size);
}
