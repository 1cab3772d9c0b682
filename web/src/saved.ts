/** A saved file: the explorer over what was kept in it. */

import { mount } from "svelte";
import { loadFonts } from "./fonts";
import { press } from "./keys";
import { Page } from "./page.svelte";
import { Recording } from "./recording";
import { Server } from "./server";
import "./style.css";
import Inset from "./view/Inset.svelte";

await loadFonts();
const recording = await Recording.open(document.getElementById("recording")!.textContent.trim());
const page = new Page(new Server(recording.ask), recording.contents.query, recording);

function paint(theme: "light" | "dark"): void {
  document.documentElement.dataset.theme = page.theme = theme;
}

paint(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
window.addEventListener("keydown", (event) => void press(page, event));
mount(Inset, {
  target: document.getElementById("page")!,
  props: { page, ids: recording.ids, edits: recording.contents.edits, ontheme: paint },
});
