/** The explorer in a notebook, as anywidget shows it: in a tree of its own, so that no style goes in or out. */

import { mount, unmount } from "svelte";
import { loadFonts } from "./fonts";
import { type Channel, Kernel } from "./engine/kernel";
import { Page } from "./state/page.svelte";
import { Server } from "./engine/client";
import style from "./style.css?inline";
import { followTheme } from "./state/theme";
import Inset from "./views/EmbeddedExplorer.svelte";

/** Where it opens. */
interface Opening {
  query: string;
  ids: number[] | null; // of its text
  edits: number; // that hold for those ids
}

async function render({ model, el }: { model: Channel; el: HTMLElement }): Promise<() => void> {
  await loadFonts();
  const opening = model.get("opening") as Opening;
  const height = model.get("height") as number | null;
  const host = document.createElement("div");
  host.dataset.lmSuppressShortcuts = "true"; // JupyterLab's own keys
  if (height !== null) Object.assign(host.style, { maxHeight: `${height}px`, overflow: "auto" });
  const root = host.attachShadow({ mode: "open" });
  root.append(Object.assign(document.createElement("style"), { textContent: style }));
  el.append(host);
  const kernel = new Kernel(model, (waiting) => (page.connection.waiting = waiting));
  const page = new Page(new Server(kernel.ask), opening.query);
  const unfollow = followTheme(el, (theme) => (host.dataset.theme = page.theme = theme));
  const props = { page, ids: opening.ids ?? undefined, edits: opening.edits };
  const inset = mount(Inset, { target: root, props });
  return () => {
    unfollow();
    kernel.close();
    void unmount(inset);
  };
}

export default { render };
