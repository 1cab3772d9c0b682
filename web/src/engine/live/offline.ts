/** Makes a published page work without a network after the first visit. */

const LONGEST_WAIT = 10_000; // milliseconds; after that, the page is only stored on its next visit

/** Registers the service worker, and resolves when it answers this page's requests, or when it cannot: the page was
 * opened from disk or over plain http, or the browser has none. */
export async function enableOffline(script: string): Promise<void> {
  const workers = (navigator as Partial<Navigator>).serviceWorker;
  if (!workers || location.protocol === "file:") return;
  try {
    await workers.register(script);
  } catch {
    return; // private windows and some policies forbid it
  }
  if (workers.controller) return;
  await new Promise<void>((resolve) => {
    workers.addEventListener("controllerchange", () => resolve(), { once: true });
    setTimeout(resolve, LONGEST_WAIT);
  });
}
