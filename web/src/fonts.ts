/** The page's fonts for saved files and notebooks, where no style sheet can load them. */

import inter from "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2?inline";
import mono from "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2?inline";
import main from "katex/dist/fonts/KaTeX_Main-Regular.woff2?inline";
import math from "katex/dist/fonts/KaTeX_Math-Italic.woff2?inline";
import size1 from "katex/dist/fonts/KaTeX_Size1-Regular.woff2?inline";
import size2 from "katex/dist/fonts/KaTeX_Size2-Regular.woff2?inline";
import { figureFont } from "./drawing/figureFont";

const VARIABLE: FontFaceDescriptors = { weight: "100 800" };
const FONTS: [name: string, url: string, descriptors: FontFaceDescriptors][] = [
  ["Inter Variable", inter, VARIABLE],
  ["JetBrains Mono Variable", mono, VARIABLE],
  ["KaTeX_Main", main, {}],
  ["KaTeX_Math", math, { style: "italic" }],
  ["KaTeX_Size1", size1, {}],
  ["KaTeX_Size2", size2, {}],
];

/** Loads the fonts. System fonts replace those that fail to load. */
export async function loadFonts(): Promise<void> {
  figureFont.url = inter;
  const missing = FONTS.filter(
    ([name]) => ![...document.fonts].some((font) => font.family.replaceAll('"', "") === name),
  );
  await Promise.allSettled(
    missing.map(async ([name, url, descriptors]) => {
      const binary = atob(url.slice(url.indexOf(",") + 1));
      const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
      document.fonts.add(await new FontFace(name, bytes, descriptors).load());
    }),
  );
}
