/** Where no model is: a saved file, which holds one text, or a published folder, which holds several. */

import { mount } from "svelte";
import type { Theme } from "./drawing/colors";
import { loadFonts } from "./fonts";
import { press } from "./state/shortcuts";
import { Page } from "./state/page.svelte";
import { Publication } from "./engine/publishedFolder";
import { Recording } from "./engine/savedFile";
import { Server } from "./engine/client";
import "./style.css";
import { systemTheme } from "./state/theme";
import Inset from "./views/EmbeddedExplorer.svelte";
import Published from "./views/PublishedPage.svelte";

const target = document.getElementById("page")!;
const recorded = document.getElementById("recording")?.textContent.trim();

await loadFonts();
if (recorded === undefined) await showFolder();
else await showFile(recorded);

async function showFile(recorded: string): Promise<void> {
  const recording = await Recording.open(recorded);
  const page = new Page(new Server(recording.ask), recording.contents.query, recording);
  const paint = (theme: Theme) => {
    document.documentElement.dataset.theme = page.theme = theme;
  };
  paint(systemTheme());
  window.addEventListener("keydown", (event) => void press(page, event));
  const props = { page, ids: recording.ids, edits: recording.contents.edits, ontheme: paint };
  mount(Inset, { target, props });
}

/** Wherever it is served, also below other pages: its files are beside this one. */
async function showFolder(): Promise<void> {
  const publication = await Publication.open(async (name) => {
    const answer = await fetch(new URL(name, document.baseURI));
    if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  });
  const page = new Page(new Server(publication.ask), location.search, publication);
  if (!publication.texts.includes(page.place.text)) page.place.text = "";
  target.replaceChildren();
  mount(Published, { target, props: { page } });
}
