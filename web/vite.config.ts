import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { licences } from "./licences.ts";

// The page is part of the Python package, which serves it.
export default defineConfig({
  plugins: [svelte(), licences("licences.md")],
  base: "./",
  build: {
    outDir: "../src/clearhead/views/page",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the server's content security policy lets nothing inline run
    modulePreload: { polyfill: false },
    target: "es2023",
  },
});
