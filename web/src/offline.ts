/** The service worker of a live page: keeps the page's files, so that it opens without a network after one visit.
 *
 * Weights are named by their hashes and never change; all other files come from the host while it can be reached.
 */

interface ServiceWorkerScope {
  addEventListener(type: "install" | "activate", listener: (event: LifecycleEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
  skipWaiting: () => Promise<void>;
  clients: { claim: () => Promise<void> };
  registration: { scope: string };
}
interface LifecycleEvent {
  waitUntil: (work: Promise<unknown>) => void;
}
interface FetchEvent {
  request: Request;
  respondWith: (response: Promise<Response>) => void;
}

const scope = globalThis as unknown as ServiceWorkerScope;
const CACHE = "clearhead";
const PAGE = ["./", "page.js", "page.css", "icon.svg", "live.json"]; // loaded before this worker was installed

scope.addEventListener("install", (event) => {
  const fill = caches.open(CACHE).then((cache) => cache.addAll(PAGE));
  event.waitUntil(fill.then(() => scope.skipWaiting()));
});
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method === "GET" && request.url.startsWith(scope.registration.scope))
    event.respondWith(answer(request));
});

async function answer(request: Request): Promise<Response> {
  const cache = await caches.open(CACHE);
  const { pathname } = new URL(request.url);
  if (/\/weights-[0-9a-f]{16}\.bin$/.test(pathname)) {
    const kept = await cache.match(request);
    if (kept) return kept;
  }
  try {
    const response = await fetch(request);
    if (response.ok) await keep(cache, request, response.clone());
    return response;
  } catch (error) {
    const kept = await cache.match(request, { ignoreSearch: true }); // an address holds the page's state
    if (kept) return kept;
    throw error;
  }
}

async function keep(cache: Cache, request: Request, response: Response): Promise<void> {
  const address = new URL(request.url);
  address.search = "";
  if (address.pathname.endsWith("/weights.json")) await deleteOthers(cache, address, response.clone());
  await cache.put(address, response);
}

/** Deletes the weights of an earlier publication. */
async function deleteOthers(cache: Cache, index: URL, response: Response): Promise<void> {
  const { pieces } = (await response.json()) as { pieces: { file: string }[] };
  const current = new Set(pieces.map(({ file }) => new URL(file, index).href));
  const folder = new URL(".", index).href;
  for (const { url } of await cache.keys())
    if (url.startsWith(`${folder}weights-`) && !current.has(url)) await cache.delete(url);
}
