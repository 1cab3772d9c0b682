import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { licenses } from "./licenses.ts";

// What is carried elsewhere is one script: in a notebook with its styles in it, in a saved file beside them.
const CARRIED = ["widget", "saved"];

// All of it is part of the Python package, which serves the page.
export default defineConfig(({ mode }) => ({
  plugins: [
    svelte({ compilerOptions: { css: mode === "widget" ? "injected" : "external" } }),
    licenses("licenses.md"),
  ],
  base: "./",
  publicDir: CARRIED.includes(mode) ? false : "public",
  build: {
    outDir: CARRIED.includes(mode) ? "../src/clearhead/page/bundles" : "../src/clearhead/page/site",
    emptyOutDir: mode !== "saved", // which comes after the widget
    assetsInlineLimit: 0, // the server's content security policy lets nothing inline run
    modulePreload: { polyfill: false },
    target: "es2023",
    ...(CARRIED.includes(mode) && {
      rolldownOptions: {
        input: { [mode]: `src/${mode}.ts` },
        preserveEntrySignatures: "exports-only",
        output: { entryFileNames: "[name].js", assetFileNames: "[name][extname]", codeSplitting: false },
      },
    }),
  },
}));
