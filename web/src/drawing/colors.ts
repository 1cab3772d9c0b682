/** Colors: the hue stands for the role and the sign of a number, the intensity for its size. */

import { interpolateRgb } from "d3-interpolate";
import type { Role } from "../model/sites";

export type Theme = "light" | "dark";

/** Diagonal lines on a background: no number looks like this. */
export interface Hatch {
  background: string;
  line: string;
}

interface Palette {
  paper: string;
  empty: string; // for zero
  masked: Hatch; // for masked cells
  roles: Record<Role, { positive: string; negative: string }>;
}

// The negative hues differ from the positive ones even under red-green color blindness.
export const PALETTES: Record<Theme, Palette> = {
  light: {
    paper: "#fbfaf7",
    empty: "#efeef2",
    masked: { background: "#fdfdfc", line: "#c4c7d0" },
    roles: {
      query: { positive: "#2f6fdf", negative: "#a8752b" },
      key: { positive: "#d6453d", negative: "#3b7f99" },
      value: { positive: "#2b9a58", negative: "#a3568f" },
      attention: { positive: "#7a49d0", negative: "#8a7a2c" },
      residual: { positive: "#3a3f47", negative: "#c46a2e" },
      feedforward: { positive: "#b7791f", negative: "#4c6f9e" },
    },
  },
  dark: {
    paper: "#15171b",
    empty: "#262a31",
    masked: { background: "#131519", line: "#444a55" },
    roles: {
      query: { positive: "#6fa2ff", negative: "#c99a54" },
      key: { positive: "#ff7d74", negative: "#63aac6" },
      value: { positive: "#5cc98a", negative: "#cf86bd" },
      attention: { positive: "#a985f5", negative: "#b6a553" },
      residual: { positive: "#d5d9e0", negative: "#e0925c" },
      feedforward: { positive: "#e0a54c", negative: "#7f9fcb" },
    },
  },
};

/** The colors of runs and of lines in plots. */
export const LINE_COLORS: Record<Theme, string[]> = {
  light: ["#7a49d0", "#0f7b8a", "#a8650f", "#c2347f", "#2863cc", "#4d7c0f"],
  dark: ["#b797ff", "#4fc3d4", "#e5ae5c", "#ff86bf", "#7dabff", "#a3d65c"],
};

/** The color of a number. Numbers of at least `peak` have full intensity. */
export type ColorScale = (value: number, peak: number) => string;

const LEVELS = 64; // levels of intensity per sign, precomputed

const scales = new Map<string, ColorScale>();

/** Cached by role and theme. */
export function colorScale(role: Role, theme: Theme): ColorScale {
  const key = `${role} ${theme}`;
  const scale = scales.get(key) ?? makeScale(role, theme);
  scales.set(key, scale);
  return scale;
}

function makeScale(role: Role, theme: Theme): ColorScale {
  const { empty, masked, roles } = PALETTES[theme];
  const steps = (color: string) => {
    const interpolate = interpolateRgb(empty, color);
    return Array.from({ length: LEVELS + 1 }, (_, i) => interpolate(i / LEVELS));
  };
  const positive = steps(roles[role].positive);
  const negative = steps(roles[role].negative);
  return (value, peak) => {
    if (!Number.isFinite(value)) return masked.background;
    const level = peak > 0 ? Math.min(1, Math.abs(value) / peak) : 0;
    return (value < 0 ? negative : positive)[Math.round(level * LEVELS)]!;
  };
}

const pixels = new Map<string, Uint32Array>();

/** A scale as pixels, from the lowest number to the highest. Cached. */
function makePixels(role: Role, theme: Theme): Uint32Array {
  const key = `${role} ${theme}`;
  const cached = pixels.get(key);
  if (cached) return cached;
  const scale = colorScale(role, theme);
  const pixel = (value: number) => {
    const [r, g, b] = channels(scale(value, LEVELS));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; // RGBA in little-endian byte order
  };
  const colors = Uint32Array.from({ length: 2 * LEVELS + 1 }, (_, i) => pixel(i - LEVELS));
  pixels.set(key, colors);
  return colors;
}

/**
 * A function that writes the colors of numbers as pixels: fast enough for a million cells.
 * Masked cells are transparent; paint the hatch below them.
 */
export function makePixelPainter(
  role: Role,
  theme: Theme,
  peak: number,
): (values: Float32Array, pixels: Uint32Array) => void {
  const colors = makePixels(role, theme);
  const factor = peak > 0 ? LEVELS / peak : 0;
  return (values, pixels) => {
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      const level = Math.min(LEVELS, Math.round(Math.abs(value) * factor));
      pixels[i] = Number.isFinite(value) ? colors[value < 0 ? LEVELS - level : LEVELS + level]! : 0;
    }
  };
}

export const HATCH_SPACING = 6; // pixels between the hatch's lines, horizontally

/** The hatch of masked cells as a CSS background. */
export function hatchCss(theme: Theme): string {
  const { background, line } = PALETTES[theme].masked;
  const period = HATCH_SPACING / Math.SQRT2;
  return `repeating-linear-gradient(135deg, ${line} 0 1px, ${background} 1px ${period.toFixed(3)}px)`;
}

/** Red, green and blue, 0 to 255. */
export function channels(color: string): [number, number, number] {
  const rgb = color.startsWith("#")
    ? [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16))
    : color.match(/\d+/g)!.slice(0, 3).map(Number);
  return rgb as [number, number, number];
}

const textColors = new Map<string, "light" | "dark">(); // by background color

/** Whether light or dark text has more contrast on a color. The better one has a contrast ratio of at least 4.5. */
export function textColorOn(color: string): "light" | "dark" {
  const text = textColors.get(color) ?? findTextColor(color);
  textColors.set(color, text);
  return text;
}

function findTextColor(color: string): "light" | "dark" {
  const [r, g, b] = channels(color).map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? "light" : "dark";
}
