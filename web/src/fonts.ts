/** The page's letters where no style sheet can bring them: a saved file, or a tree of one's own in a notebook. */

import inter from "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2?inline";
import mono from "@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2?inline";

const FONTS = { "Inter Variable": inter, "JetBrains Mono Variable": mono };

/** What cannot be loaded is drawn in the system's own. */
export async function loadFonts(): Promise<void> {
  const missing = Object.entries(FONTS).filter(
    ([name]) => ![...document.fonts].some((font) => font.family.replaceAll('"', "") === name),
  );
  await Promise.allSettled(
    missing.map(async ([name, address]) => {
      const letters = atob(address.slice(address.indexOf(",") + 1));
      const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
      document.fonts.add(await new FontFace(name, bytes, { weight: "100 800" }).load());
    }),
  );
}
