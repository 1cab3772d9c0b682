/** Makes a published page work without a network after the first visit. */

const LONGEST_WAIT = 10_000; // milliseconds; after that, the page is stored only on the next visit

/** Registers the service worker, and resolves when it answers this page's requests, or when it cannot: the page was
 * opened from disk or over plain http, or the browser has none. */
export async function enableOffline(script: string): Promise<void> {
  const workers = (navigator as Partial<Navigator>).serviceWorker;
  if (!workers || location.protocol === "file:") return;
  // Private windows and some policies forbid it.
  const registered = workers.register(script).then(
    () => true,
    () => false,
  );
  if (workers.controller) return; // without a network, looking for a newer one may take a long time
  const controlled = new Promise((resolve) =>
    workers.addEventListener("controllerchange", resolve, { once: true }),
  );
  const waited = new Promise((resolve) => setTimeout(resolve, LONGEST_WAIT));
  if (await registered) await Promise.race([controlled, waited]);
}
