/** Entry point without a server: a saved file, which holds one text; a published folder, which holds several; or a live
 * page, which holds models. */

import "katex/dist/katex.css";
import { mount } from "svelte";
import type { Theme } from "./drawing/colors";
import { ApiClient } from "./engine/client";
import { PublishedFolder } from "./engine/publishedFolder";
import { enableOffline } from "./engine/live/offline";
import { LIVE_FILE, type LiveIndex } from "./engine/live/models";
import { SavedFile } from "./engine/savedFile";
import { type FileSource, openFiles, readJson } from "./engine/weights/files";
import { loadFonts } from "./fonts";
import { Page } from "./state/page.svelte";
import { handleShortcut } from "./state/shortcuts";
import { followSystem } from "./state/theme";
import "./style.css";
import EmbeddedExplorer from "./views/EmbeddedExplorer.svelte";
import LivePage from "./views/LivePage.svelte";
import PublishedPage from "./views/PublishedPage.svelte";

const target = document.getElementById("page")!;
const files = embeddedFiles();
const { language } = target.dataset; // in which the file was saved

try {
  await loadFonts();
  if (target.dataset.live !== undefined) await showLive();
  else if (files.recording === undefined) await showFolder();
  else await showFile(files.recording);
} catch (error) {
  // Nothing could be shown: a file is missing or damaged.
  const problem = document.createElement("p");
  problem.setAttribute("role", "alert");
  problem.textContent = error instanceof Error ? error.message : String(error);
  target.replaceChildren(problem);
  throw error;
}

async function showFile(recording: Uint8Array<ArrayBuffer>): Promise<void> {
  const file = await SavedFile.open(recording);
  const page = new Page(new ApiClient(file.fetch), file.contents.query, file);
  const setTheme = (theme: Theme) => {
    document.documentElement.dataset.theme = page.theme = theme;
  };
  let isChosen = false; // by the reader
  followSystem(setTheme, () => isChosen);
  const choose = (theme: Theme) => {
    isChosen = true;
    setTheme(theme);
  };
  window.addEventListener("keydown", (event) => void handleShortcut(page, event));
  const props = { page, ids: file.ids, edits: file.contents.edits, language, ontheme: choose };
  mount(EmbeddedExplorer, { target, props });
}

/** Reads the folder's files relative to this document, so that it can be served from any path. */
async function showFolder(): Promise<void> {
  const folder = await PublishedFolder.open(async (name) => {
    const response = await fetch(new URL(name, document.baseURI));
    if (!response.ok) throw new Error(`${name}: ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  });
  const page = new Page(new ApiClient(folder.fetch), location.search, folder);
  if (!folder.texts.includes(page.location.text ?? "")) page.location.text = null;
  target.replaceChildren();
  mount(PublishedPage, { target, props: { page } });
}

/** Runs the models that are in this document, or else in its folder. */
async function showLive(): Promise<void> {
  const isFolder = Object.keys(files).length === 0;
  if (isFolder) await enableOffline("serviceWorker.js");
  const source: FileSource = isFolder ? { address: document.baseURI } : { files };
  const { labs, query } = await readJson<LiveIndex>(openFiles(source), LIVE_FILE);
  target.replaceChildren();
  mount(LivePage, { target, props: { source, labs, query: query ?? "", language } });
}

/** The files inside this document, by name. */
function embeddedFiles(): Record<string, Uint8Array<ArrayBuffer>> {
  const scripts = [...document.querySelectorAll<HTMLScriptElement>("script[data-file]")];
  return Object.fromEntries(
    scripts.map((script) => {
      const bytes = Uint8Array.from(atob(script.textContent), (character) => character.charCodeAt(0));
      script.remove(); // the text takes more memory than the bytes
      return [script.dataset.file!, bytes];
    }),
  );
}
