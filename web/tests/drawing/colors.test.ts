import type { Role } from "../../src/model/sites";
import { expect, test } from "vitest";
import {
  makePixelPainter,
  channels,
  hatchCss,
  textColorOn,
  colorScale,
  PALETTES,
} from "../../src/drawing/colors";

const ROLES = Object.keys(PALETTES.light.roles) as Role[];

function luminance(color: string): number {
  const [r, g, b] = channels(color).map((part) => {
    const x = part / 255;
    return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

test.each(["light", "dark"] as const)("text is readable on every color of the %s theme", (theme) => {
  for (const role of ROLES) {
    const scale = colorScale(role, theme);
    for (let value = -1; value <= 1; value += 1 / 64) {
      const background = luminance(scale(value, 1)) + 0.05;
      expect(
        textColorOn(scale(value, 1)) === "light" ? 1.05 / background : background / 0.05,
      ).toBeGreaterThan(4.5);
    }
  }
});

test("paints pixels in the colors of the scale", () => {
  const values = Float32Array.from([-2, -0.5, 0, 0.31, 1, NaN, -Infinity]);
  const pixels = new Uint32Array(values.length);
  makePixelPainter("key", "light", 1)(values, pixels);
  const scale = colorScale("key", "light");
  const bytes = new Uint8Array(pixels.buffer);
  values.forEach((value, i) => {
    const opaque = [...channels(scale(value, 1)), 255];
    expect([...bytes.slice(4 * i, 4 * i + 4)]).toEqual(Number.isFinite(value) ? opaque : [0, 0, 0, 0]);
  });
});

test.each(["light", "dark"] as const)("the hatch stands out from every low number, %s", (theme) => {
  const { background, line } = PALETTES[theme].masked;
  const contrast = (one: string, other: string) => {
    const [low, high] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
    return (high! + 0.05) / (low! + 0.05);
  };
  expect(contrast(background, line)).toBeGreaterThan(1.6);
  for (const role of ROLES) {
    const zero = colorScale(role, theme)(0, 1);
    expect(contrast(zero, background)).toBeGreaterThan(1.1);
    expect(contrast(zero, line)).toBeGreaterThan(1.4);
  }
  expect(hatchCss(theme)).toContain(line);
});
