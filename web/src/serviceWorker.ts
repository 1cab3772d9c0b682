/** Entry point of the service worker of a published live page, which makes it open without a network. */

import { OfflineCache } from "./engine/live/offlineCache";

/** The part of a service worker's global scope that is used here. */
interface ServiceWorkerScope {
  registration: { scope: string };
  clients: { claim: () => Promise<void> };
  skipWaiting: () => Promise<void>;
  addEventListener: (type: "install" | "activate" | "fetch", listener: (event: WorkerEvent) => void) => void;
}

interface WorkerEvent extends Event {
  request: Request;
  waitUntil: (promise: Promise<unknown>) => void;
  respondWith: (response: Promise<Response>) => void;
}

// The page itself was loaded before the service worker, so its files are stored when it is installed.
const PAGE_FILES = ["./", "page.js", "page.css", "icon.svg", "live.json"];

const scope = globalThis as unknown as ServiceWorkerScope;
const cacheName = `clearhead ${scope.registration.scope}`; // pages on the same host do not share one

scope.addEventListener("install", (event) => {
  const store = async () => (await caches.open(cacheName)).addAll(PAGE_FILES);
  event.waitUntil(Promise.all([store(), scope.skipWaiting()]));
});

scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));

scope.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(scope.registration.scope)) return;
  const answer = async () => {
    const cache = await caches.open(cacheName);
    return new OfflineCache(
      cache,
      (each) => fetch(each),
      (stored) => event.waitUntil(stored),
    ).answer(request);
  };
  event.respondWith(answer());
});
