/** Writes the licenses of all bundled packages into one file. Vite's own `build.license` misses fonts that a style
 * sheet imports. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Plugin, Rolldown } from "vite";

interface Package {
  name: string;
  version: string;
  license?: string;
}

export function licenses(fileName: string): Plugin {
  return {
    name: "licenses",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        const folders = new Set(Object.values(bundle).flatMap(sources).flatMap(packageFolder));
        const texts = [...folders].sort().map(describe);
        const source = ["# Bundled packages and their licenses\n", ...texts].join("\n");
        this.emitFile({ type: "asset", fileName, source });
      },
    },
  };
}

function sources(file: Rolldown.OutputAsset | Rolldown.OutputChunk): string[] {
  return file.type === "chunk" ? file.moduleIds : file.originalFileNames;
}

/** The folder of the npm package that a file belongs to, if any. */
function packageFolder(file: string): string[] {
  if (file.startsWith("\0") || !/[\\/]node_modules[\\/]/.test(`/${file}`)) return [];
  let folder = dirname(resolve(file.replace(/\?.*$/, "")));
  while (!("name" in readPackage(folder) && "version" in readPackage(folder))) folder = dirname(folder);
  return [folder];
}

function readPackage(folder: string): Partial<Package> {
  const path = join(folder, "package.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf-8")) as Partial<Package>) : {};
}

function describe(folder: string): string {
  const { name, version, license } = readPackage(folder) as Package;
  const file = readdirSync(folder).find((each) => /^(licen[cs]e|copying)/i.test(each));
  if (file === undefined) throw new Error(`${name} is bundled, but has no license file`);
  return `## ${name} ${version} (${license ?? "see below"})\n\n${readFileSync(join(folder, file), "utf-8").trim()}\n`;
}
