/** Entry point of the anywidget in notebooks: the explorer in a shadow root, which isolates its styles. */

import mathStyle from "katex/dist/katex.css?inline";
import { mount, unmount } from "svelte";
import { ApiClient } from "./engine/client";
import { KernelConnection, type WidgetModel } from "./engine/kernel";
import { loadFonts } from "./fonts";
import { Page } from "./state/page.svelte";
import { watchTheme } from "./state/theme";
import style from "./style.css?inline";
import EmbeddedExplorer from "./views/EmbeddedExplorer.svelte";

interface WidgetOpening {
  query: string; // the location it opens at
  ids: number[] | null; // token ids of the text
  edits: number; // how many edits were made in Python
}

async function render({ model, el }: { model: WidgetModel; el: HTMLElement }): Promise<() => void> {
  await loadFonts();
  const opening = model.get("opening") as WidgetOpening;
  const height = model.get("height") as number | null;
  const host = document.createElement("div");
  host.dataset.lmSuppressShortcuts = "true"; // turns off JupyterLab's own shortcuts
  if (height !== null) Object.assign(host.style, { maxHeight: `${height}px`, overflow: "auto" });
  const root = host.attachShadow({ mode: "open" });
  root.append(Object.assign(document.createElement("style"), { textContent: mathStyle + style }));
  el.append(host);
  const kernel = new KernelConnection(model, (waiting) => (page.connection.waiting = waiting));
  const page = new Page(new ApiClient(kernel.fetch), opening.query);
  const stopWatching = watchTheme(el, (theme) => (host.dataset.theme = page.theme = theme));
  const props = { page, ids: opening.ids ?? undefined, edits: opening.edits };
  const explorer = mount(EmbeddedExplorer, { target: root, props });
  return () => {
    stopWatching();
    kernel.close();
    void unmount(explorer);
  };
}

export default { render };
