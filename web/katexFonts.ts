/** Leaves the fonts out of KaTeX's style sheet: the page declares only those that its formulas use. */
import type { Plugin } from "vite";

export function katexFonts(): Plugin {
  return {
    name: "katex-fonts",
    enforce: "pre",
    transform: {
      filter: { id: /katex\/dist\/katex\.css/ },
      handler: (code) => code.replaceAll(/@font-face\s*\{[^}]*\}/g, ""),
    },
  };
}
