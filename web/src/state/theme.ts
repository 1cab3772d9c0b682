/** Light or dark as what is around: the system, or JupyterLab, VS Code, Colab and marimo, each in a way of its own. */

import type { Theme } from "../drawing/colors";

/** As the reader's system is set. */
export function systemTheme(): Theme {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** The colour that stands behind an element tells. */
function themeAround(element: Element): Theme {
  for (let at: Element | null = element; at !== null; at = parentOf(at)) {
    const [red, green, blue, opacity] = paint(getComputedStyle(at).backgroundColor);
    if (opacity > 128) return 0.3 * red + 0.59 * green + 0.11 * blue < 128 ? "dark" : "light";
  }
  return systemTheme();
}

/** Red, green, blue and opacity, 0 to 255: whatever way a colour is written in, a browser can paint with it. */
function paint(colour: string): [number, number, number, number] {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const on = canvas.getContext("2d")!;
  on.fillStyle = colour;
  on.fillRect(0, 0, 1, 1);
  return [...on.getImageData(0, 0, 1, 1).data] as [number, number, number, number];
}

/** Told now and whenever it changes, until what is given back is called. */
export function followTheme(element: Element, tell: (theme: Theme) => void): () => void {
  const look = () => tell(themeAround(element));
  const observer = new MutationObserver(() => setTimeout(look, 100)); // its style sheets come a little later
  for (const each of [document.documentElement, document.body]) observer.observe(each, { attributes: true });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", look);
  look();
  return () => {
    observer.disconnect();
    system.removeEventListener("change", look);
  };
}

function parentOf(element: Element): Element | null {
  const root = element.getRootNode();
  return element.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
}
