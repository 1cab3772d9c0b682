/** A saved file, which answers the page's requests with the responses it contains. */

import type { PartName } from "../model/steps";
import type { Span } from "../model/sites";
import type { Fetch } from "./client";
import { matrixResponse } from "./matrixResponse";
import type { ViewName } from "../state/location";
import type { OfflineSource } from "./offline";
import { SavedText, type SavedTextHeader, type Tensor } from "./savedText";
import type { LensToken } from "./types";

/** The JSON at the beginning of a saved file. */
export interface SavedContents {
  query: string; // the location it opens at
  views: ViewName[];
  flow: boolean;
  heads: [number, number][];
  blocks: number[];
  ends: boolean; // whether the embedding and the final norm are saved
  edits: number; // how many edits were made in Python
  tokens: number[]; // ids of the next tokens that can be explained
  lens: string[][]; // the most likely token in the logit lens, by block and position
  exchanges: { path: string; request: object; response: unknown }[];
  sides: [SavedTextHeader] | [SavedTextHeader, SavedTextHeader]; // the second one is compared with the first
}

/** The fields of a request's body that select what was saved. */
interface RequestBody {
  model?: string;
  text?: string | number[];
  reads?: { site?: string; weight?: string; rows?: Span; columns?: Span }[];
  blocks?: Span;
  token?: number;
  rows?: Span;
}

export class SavedFile implements OfflineSource {
  readonly hasFlow: boolean;
  readonly views: readonly ViewName[];
  readonly texts: readonly string[] = []; // there is no other text to choose
  readonly opening = null; // its query names the place
  readonly ids: number[];
  readonly #texts: SavedText[] = [];
  readonly #responses: Map<string, unknown>;

  constructor(
    readonly contents: SavedContents,
    numbers: Float32Array,
    shared: ReadonlyMap<string, Tensor> = new Map(),
  ) {
    this.hasFlow = contents.flow;
    this.views = contents.views;
    this.ids = contents.sides[0].trace.ids;
    let start = 0;
    for (const header of contents.sides) {
      const text = new SavedText(header, numbers, start, shared);
      this.#texts.push(text);
      start += text.count;
    }
    this.#responses = new Map(
      contents.exchanges.map(({ path, request, response }) => [requestKey(path, request), response]),
    );
  }

  /** Decodes the base64 text of a saved file. */
  static async open(packed: Uint8Array<ArrayBuffer>): Promise<SavedFile> {
    const { contents, numbers } = await unpack<SavedContents>(packed);
    return new SavedFile(contents, numbers);
  }

  targets(): readonly number[] {
    return this.contents.tokens;
  }

  canShow({ block, head, part }: { block: number; head: number; part: PartName }): boolean {
    const { heads, blocks, ends } = this.contents;
    const hasHead = heads.some(([i, j]) => i === block && j === head);
    if (part === "embedding" || part === "final") return ends && hasHead;
    return hasHead && (part === "head" || part === "norm" || blocks.includes(block));
  }

  canAnswer(path: string, request: object): boolean {
    return this.#responses.has(requestKey(path, request));
  }

  /** Whether a whole site was saved or can be computed. */
  has(site: string): boolean {
    return this.#texts[0]!.has(site);
  }

  canCompare(site: string): boolean {
    return this.#texts.length > 1 && this.#texts.every((text) => text.isSaved(site));
  }

  readonly fetch: Fetch = async (path, { body }) => {
    const request = (typeof body === "string" ? JSON.parse(body) : {}) as RequestBody;
    const details = this.#texts.map(({ header }) => header.details);
    const models = details.filter((model, i) => details.findIndex(({ name }) => name === model.name) === i);
    const text = this.#textOf(request);
    const { n_block, n_head } = text.config;
    switch (path) {
      case "/api/models":
        return Response.json({ models, can_be_pulled: [] });
      case "/api/open":
        return Response.json(models.find(({ name }) => name === request.model));
      case "/api/trace":
        return Response.json(text.header.trace);
      case "/api/lens":
        return Response.json({ tokens: this.#lens(request.token ?? -1, request.rows) });
      case "/api/sites":
        return matrixResponse(
          request.reads!.map(({ site, weight, rows, columns }) =>
            text.read({ name: site ?? weight!, ...(rows && { rows }), ...(columns && { columns }) }),
          ),
        );
      case "/api/patterns": {
        const { values, shape } = text.get("patterns", [n_block, n_head, 1, 1]);
        const [first, last] = request.blocks ?? [0, n_block];
        const size = values.length / n_block;
        const selected = values.subarray(first * size, last * size);
        return matrixResponse([{ values: selected, shape: [last - first, ...shape.slice(1)] }]);
      }
      case "/api/streams":
        return matrixResponse([text.get("streams", [n_block, 3, text.ids.length])]);
    }
    const response = this.#responses.get(requestKey(path, request));
    if (response !== undefined) return Response.json(response);
    return Response.json({ error: { message: `${path} is not in this file` } }, { status: 404 });
  };

  /** The page names the first text by its token ids and the other one by its text. */
  #textOf({ text }: RequestBody): SavedText {
    return this.#texts.find(({ header }, i) => i > 0 && header.text === text) ?? this.#texts[0]!;
  }

  /** The logit lens: the most likely token at each block and position, and the probability of the chosen one.
   * For a long text, only the last positions are saved. */
  #lens(token: number, span?: Span): LensToken[][] {
    const { lens, tokens } = this.contents;
    const { values, shape } = this.#texts[0]!.get("lens", [0, 0, 0]); // block × (likeliest, tokens…) × position
    const [, kinds, rows] = shape as [number, number, number];
    const at = (block: number, kind: number, row: number) => values[(block * kinds + kind) * rows + row]!;
    const chosen = tokens.indexOf(token);
    const firstSaved = this.ids.length - rows;
    const [start, end] = (span ?? [firstSaved, this.ids.length]).map((row) => Math.max(0, row - firstSaved));
    return lens.map((texts, block) =>
      texts
        .map((text, row) => ({
          text,
          probability: at(block, 0, row),
          chosen: chosen < 0 ? null : at(block, 1 + chosen, row),
        }))
        .slice(start, end),
    );
  }
}

/** Unpacks zlib-compressed data: the JSON's length as uint32, the JSON, and float32 numbers as four byte planes, which
 * hold the first bytes of all numbers, then all second bytes, and so on. */
export async function unpack<Contents>(
  packed: Uint8Array<ArrayBuffer>,
): Promise<{ contents: Contents; numbers: Float32Array }> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const contents = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Contents;
  const planes = bytes.subarray(4 + length);
  const count = planes.length / 4;
  const interleaved = new Uint8Array(planes.length);
  for (let k = 0; k < 4; k++) for (let i = 0; i < count; i++) interleaved[4 * i + k] = planes[k * count + i]!;
  return { contents, numbers: new Float32Array(interleaved.buffer) };
}

/** Identifies a request among those about the same input. */
export function requestKey(path: string, request: object): string {
  const inputFields = ["model", "text", "edits", "other"];
  const fields = Object.entries(request).filter(([name]) => !inputFields.includes(name));
  return `${path} ${stableStringify(Object.fromEntries(fields))}`;
}

/** Like JSON.stringify, but with sorted keys. */
function stableStringify(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(stableStringify).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([name, field]) => `${name}:${stableStringify(field)}`).join()}}`;
}
