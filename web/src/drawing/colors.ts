/** Color means role; its strength is the size of a number, its hue the sign. */

import { interpolateRgb } from "d3-interpolate";
import type { Role } from "../model/sites";

export type Theme = "light" | "dark";

interface Palette {
  paper: string;
  empty: string; // zero
  masked: string; // what the model may not see
  roles: Record<Role, { positive: string; negative: string }>;
}

// Negative numbers go towards a hue that people who do not tell red from green can tell from the role's own.
export const PALETTES: Record<Theme, Palette> = {
  light: {
    paper: "#fbfaf7",
    empty: "#f3f2ee",
    masked: "#e2e4ea",
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
    empty: "#22252b",
    masked: "#0e1013",
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

/** Lines that are told apart by their color alone: those of runs, one after the other. */
export const LINE_COLORS: Record<Theme, string[]> = {
  light: ["#7a49d0", "#0f7b8a", "#a8650f", "#c2347f", "#2863cc", "#4d7c0f"],
  dark: ["#b797ff", "#4fc3d4", "#e5ae5c", "#ff86bf", "#7dabff", "#a3d65c"],
};

/** A number's color, where `peak` has the strongest. */
export type Scale = (value: number, peak: number) => string;

const STRENGTHS = 64; // as many as an eye can tell, so that colors are made once

const scales = new Map<string, Scale>();

/** Made once: its colors are a hundred mixtures. */
export function colorScale(role: Role, theme: Theme): Scale {
  const key = `${role} ${theme}`;
  const scale = scales.get(key) ?? mixScale(role, theme);
  scales.set(key, scale);
  return scale;
}

function mixScale(role: Role, theme: Theme): Scale {
  const { empty, masked, roles } = PALETTES[theme];
  const steps = (color: string) => {
    const between = interpolateRgb(empty, color);
    return Array.from({ length: STRENGTHS + 1 }, (_, i) => between(i / STRENGTHS));
  };
  const positive = steps(roles[role].positive);
  const negative = steps(roles[role].negative);
  return (value, peak) => {
    if (!Number.isFinite(value)) return masked;
    const strength = peak > 0 ? Math.min(1, Math.abs(value) / peak) : 0;
    return (value < 0 ? negative : positive)[Math.round(strength * STRENGTHS)]!;
  };
}

const pixels = new Map<string, { colors: Uint32Array; unseen: number }>();

/** A scale's colors as pixels, from the lowest to the highest, and that of what is masked. Made once. */
function makePixels(role: Role, theme: Theme): { colors: Uint32Array; unseen: number } {
  const key = `${role} ${theme}`;
  const known = pixels.get(key);
  if (known) return known;
  const scale = colorScale(role, theme);
  const pixel = (value: number) => {
    const [r, g, b] = channels(scale(value, STRENGTHS));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0; // little-endian, as every browser's machine is
  };
  const colors = Uint32Array.from({ length: 2 * STRENGTHS + 1 }, (_, i) => pixel(i - STRENGTHS));
  const made = { colors, unseen: pixel(-Infinity) };
  pixels.set(key, made);
  return made;
}

/** Numbers into pixels, in the colors of a scale: for pictures of a million cells. */
export function makePixelPainter(
  role: Role,
  theme: Theme,
  peak: number,
): (values: Float32Array, pixels: Uint32Array) => void {
  const { colors, unseen } = makePixels(role, theme);
  const factor = peak > 0 ? STRENGTHS / peak : 0;
  return (values, pixels) => {
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      const strength = Math.min(STRENGTHS, Math.round(Math.abs(value) * factor));
      pixels[i] = Number.isFinite(value)
        ? colors[value < 0 ? STRENGTHS - strength : STRENGTHS + strength]!
        : unseen;
    }
  };
}

/** Red, green and blue, 0 to 255. */
export function channels(color: string): [number, number, number] {
  const found = color.startsWith("#")
    ? [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16))
    : color.match(/\d+/g)!.slice(0, 3).map(Number);
  return found as [number, number, number];
}

const inks = new Map<string, "light" | "dark">(); // there are as many as there are colors

/** Whether white or black letters are read better on a color; the better ones have a contrast of 4.5 at least. */
export function textColorOn(color: string): "light" | "dark" {
  const ink = inks.get(color) ?? findInk(color);
  inks.set(color, ink);
  return ink;
}

function findInk(color: string): "light" | "dark" {
  const [r, g, b] = channels(color).map((channel) => {
    const part = channel / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
  return 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 ? "light" : "dark";
}
