import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { katexFonts } from "./katexFonts.ts";
import { licenses } from "./licenses.ts";

// Bundles for notebooks, saved files and live pages are single scripts. The widget injects its own styles.
const BUNDLES = ["widget", "saved", "serviceWorker"];

// The output is part of the Python package.
export default defineConfig(({ mode }) => ({
  plugins: [
    katexFonts(),
    svelte({ compilerOptions: { css: mode === "widget" ? "injected" : "external" } }),
    licenses("licenses.md"),
  ],
  base: "./",
  publicDir: BUNDLES.includes(mode) ? false : "public",
  build: {
    outDir: BUNDLES.includes(mode) ? "../src/clearhead/page/bundles" : "../src/clearhead/page/site",
    emptyOutDir: mode === "widget" || !BUNDLES.includes(mode), // the widget is built before the other bundles
    assetsInlineLimit: 0, // the content security policy forbids inline data
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1200, // KB: the page is one script, read from this computer
    target: "es2023",
    ...(BUNDLES.includes(mode) && {
      rolldownOptions: {
        input: { [mode]: `src/${mode}.ts` },
        preserveEntrySignatures: "exports-only",
        output: { entryFileNames: "[name].js", assetFileNames: "[name][extname]", codeSplitting: false },
      },
    }),
  },
}));
