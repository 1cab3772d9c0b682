/** What colours say in numbers: what the strongest stands for, on either side. */

import { makeScale, type Role, type Theme } from "./colours";
import { short } from "./numbers";
import type { Pen } from "./pen";

export interface Ends {
  peak: number; // what the strongest colour stands for
  exceeded: boolean; // some numbers are larger
  negative: boolean; // some are below zero
}

/** Of some numbers, where this one has the strongest colour. */
export function endsOf(values: ArrayLike<number>, peak: number): Ends {
  let [exceeded, negative] = [false, false];
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (!Number.isFinite(value)) continue;
    if (value < 0) negative = true;
    if (Math.abs(value) > peak * 1.0001) exceeded = true;
  }
  return { peak, exceeded, negative };
}

/** The numbers at both ends. */
export function tellEnds({ peak, exceeded, negative }: Ends): [string, string] {
  const size = peak > 0 && peak < 0.095 ? peak.toPrecision(1) : short(peak);
  const least = exceeded ? `≤ −${size}` : `−${size}`;
  return [negative ? least : "0", exceeded ? `≥ ${size}` : size];
}

const HALF = [0.25, 0.5, 0.75, 1];

/** From the lower end to the upper one. */
export function stepsBetween({ negative }: Ends): number[] {
  return [...(negative ? HALF.toReversed().map((step) => -step) : []), 0, ...HALF];
}

const STEP = 14; // pixels

/** The same in a picture; gives how wide it is. */
export function paintLegend(
  pen: Pen,
  x: number,
  y: number,
  ends: Ends,
  role: Role,
  theme: Theme,
  ink: string,
): void {
  const scale = makeScale(role, theme);
  const [least, most] = tellEnds(ends);
  const steps = stepsBetween(ends);
  const start = x + 7 * least.length + 6;
  const style = { size: 11, fill: ink };
  pen.text(start - 6, y, least, { ...style, anchor: "end" });
  steps.forEach((step, i) => pen.rect(start + i * STEP, y - 6, STEP, 12, scale(step, 1)));
  pen.text(start + steps.length * STEP + 6, y, most, style);
}
