// The licenses of all that is bundled, in one file: of modules, and of fonts, which Vite's own `build.license`
// passes over where a style sheet asks for them.
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
        const source = ["# What is bundled in this page, and its licenses\n", ...texts].join("\n");
        this.emitFile({ type: "asset", fileName, source });
      },
    },
  };
}

function sources(file: Rolldown.OutputAsset | Rolldown.OutputChunk): string[] {
  return file.type === "chunk" ? file.moduleIds : file.originalFileNames;
}

/** The folder of the package that a file lies in, where it lies in one. */
function packageFolder(file: string): string[] {
  if (file.startsWith("\0") || !/[\\/]node_modules[\\/]/.test(`/${file}`)) return [];
  let folder = dirname(resolve(file.replace(/\?.*$/, "")));
  while (!("name" in read(folder) && "version" in read(folder))) folder = dirname(folder);
  return [folder];
}

function read(folder: string): Partial<Package> {
  const path = join(folder, "package.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf-8")) as Partial<Package>) : {};
}

function describe(folder: string): string {
  const { name, version, license } = read(folder) as Package;
  const file = readdirSync(folder).find((each) => /^(licen[cs]e|copying)/i.test(each));
  if (file === undefined) throw new Error(`${name} is bundled, but has no license file`);
  return `## ${name} ${version} (${license ?? "see below"})\n\n${readFileSync(join(folder, file), "utf-8").trim()}\n`;
}
