/** The page's fonts for saved files and notebooks, where no style sheet can load them. */

import inter from "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2?inline";
import mono from "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2?inline";

const FONTS = { "Inter Variable": inter, "JetBrains Mono Variable": mono };

/** Fonts that fail to load are replaced by the system's. */
export async function loadFonts(): Promise<void> {
  const missing = Object.entries(FONTS).filter(
    ([name]) => ![...document.fonts].some((font) => font.family.replaceAll('"', "") === name),
  );
  await Promise.allSettled(
    missing.map(async ([name, url]) => {
      const binary = atob(url.slice(url.indexOf(",") + 1));
      const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
      document.fonts.add(await new FontFace(name, bytes, { weight: "100 800" }).load());
    }),
  );
}
