/** Light or dark, following the system or the notebook around the widget. */

import type { Theme } from "../drawing/colors";

export function systemTheme(): Theme {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Calls `onchange` now and whenever the system's theme changes, until `isChosen` says that the reader has chosen one. */
export function followSystem(onchange: (theme: Theme) => void, isChosen = () => false): void {
  const update = () => {
    if (!isChosen()) onchange(systemTheme());
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", update);
  update();
}

/** Infers the theme from the brightness of the first opaque background: JupyterLab, VS Code, Colab and marimo each
 * mark theirs differently. */
function backgroundTheme(element: Element): Theme {
  for (let at: Element | null = element; at !== null; at = parentOf(at)) {
    const [red, green, blue, opacity] = parseColor(getComputedStyle(at).backgroundColor);
    if (opacity > 128) return 0.3 * red + 0.59 * green + 0.11 * blue < 128 ? "dark" : "light";
  }
  return systemTheme();
}

/** Red, green, blue and opacity, 0 to 255. Painting one pixel lets the browser parse any CSS color. */
function parseColor(color: string): [number, number, number, number] {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d")!;
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data] as [number, number, number, number];
}

/** Calls `onchange` now and whenever the theme around an element changes. Returns a function that stops it. */
export function watchTheme(element: Element, onchange: (theme: Theme) => void): () => void {
  const update = () => onchange(backgroundTheme(element));
  const observer = new MutationObserver(() => setTimeout(update, 100)); // style sheets arrive a little later
  for (const root of [document.documentElement, document.body]) observer.observe(root, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", update);
  update();
  return () => {
    observer.disconnect();
    system.removeEventListener("change", update);
  };
}

function parentOf(element: Element): Element | null {
  const root = element.getRootNode();
  return element.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
}
