/** Answers a published page's requests when there is no network.
 *
 * Pieces of weights are named by their hash, so that a stored one is never out of date. Of every other file, the
 * newest version is fetched, and the stored one is used if there is no network.
 */

import { sha256 } from "../weights/sha256";

/** The part of the browser's Cache that is used here. */
export type FileCache = Pick<Cache, "match" | "put" | "delete" | "keys">;

const PIECE = /\/weights-([0-9a-f]{16})\.bin$/;
const WEIGHT_INDEX = /\/weights\.json$/;

export class OfflineCache {
  constructor(
    readonly cache: FileCache,
    readonly fetchFile: (request: Request) => Promise<Response>,
    readonly waitUntil: (stored: Promise<unknown>) => void, // keeps the service worker running
  ) {}

  async answer(request: Request): Promise<Response> {
    const isPiece = PIECE.test(request.url);
    const stored = isPiece ? await this.cache.match(request.url) : undefined;
    if (stored) return stored;
    let response: Response;
    try {
      response = await this.fetchFile(request);
    } catch (error) {
      const stored = await this.cache.match(withoutQuery(request));
      if (stored) return stored;
      throw error;
    }
    // Errors and parts of files are not stored.
    if (response.status === 200)
      this.waitUntil(this.#store(request, response.clone()).catch(() => undefined));
    return response;
  }

  async #store(request: Request, response: Response): Promise<void> {
    const bytes = new Uint8Array(await response.arrayBuffer());
    const piece = PIECE.exec(request.url);
    if (piece && !(await sha256(bytes)).startsWith(piece[1]!)) return; // damaged: fetch it again next time
    if (WEIGHT_INDEX.test(request.url)) await this.#removeOldPieces(request, bytes);
    const type = response.headers.get("Content-Type") ?? "application/octet-stream";
    await this.cache.put(withoutQuery(request), new Response(bytes, { headers: { "Content-Type": type } }));
  }

  /** Removes the pieces of an earlier publication of the same model. */
  async #removeOldPieces(request: Request, bytes: Uint8Array): Promise<void> {
    const index = JSON.parse(new TextDecoder().decode(bytes)) as { pieces: { file: string }[] };
    const current = new Set(index.pieces.map(({ file }) => new URL(file, request.url).href));
    const folder = new URL(".", request.url).href;
    for (const { url } of await this.cache.keys())
      if (url.startsWith(folder) && PIECE.test(url) && !current.has(url)) await this.cache.delete(url);
  }
}

/** The address of the file. The page's state is in its query, and a host may name the page in full or not. */
function withoutQuery({ url }: Request): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.replace(/\/index\.html$/, "/")}`;
}
