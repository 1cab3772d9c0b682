/** The page's font, for embedding in exported figures. */

export const figureFont = { url: "" }; // set by main.ts and fonts.ts

/** The font as a data URL; undefined if it cannot be read. */
export async function readFigureFont(): Promise<string | undefined> {
  const { url } = figureFont;
  if (url === "" || url.startsWith("data:")) return url || undefined;
  try {
    const reader = new FileReader();
    reader.readAsDataURL(await (await fetch(url)).blob());
    await new Promise((resolve) => (reader.onloadend = resolve));
    return (reader.result as string | null) ?? undefined;
  } catch {
    return undefined;
  }
}
