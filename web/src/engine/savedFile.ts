/** What a saved file answers in a model's place: what was kept in it, and nothing else. */

import type { Place, ViewName } from "../state/location";
import type { Span } from "../model/sites";
import type { Kept } from "./offline";
import type { Ask, LensWord } from "./client";
import { type Numbers, Side, type Told } from "./savedText";

/** What stands before the numbers. */
export interface Contents {
  query: string; // where it opens
  views: ViewName[];
  flow: boolean;
  heads: [number, number][];
  blocks: number[];
  ends: boolean; // embedding and final norm
  edits: number; // that were made in Python
  words: number[]; // next words that can be asked about
  lens: string[][]; // what each block would say
  exchanges: { path: string; asked: object; answer: unknown }[];
  sides: [Told] | [Told, Told]; // the text; where two are compared, the other one too
}

/** What the page asks: about which text, and the rest of the question. */
interface Asked {
  model?: string;
  text?: string | number[];
  reads?: { site?: string; weight?: string; rows?: Span; columns?: Span }[];
  blocks?: Span;
  word?: number;
}

export class Recording implements Kept {
  readonly flow: boolean;
  readonly views: readonly ViewName[];
  readonly texts: readonly string[] = []; // the one that is shown is all there is
  readonly ids: number[];
  readonly #sides: Side[] = [];
  readonly #answers: Map<string, unknown>;

  constructor(
    readonly contents: Contents,
    numbers: Float32Array,
    common: ReadonlyMap<string, Numbers> = new Map(),
  ) {
    this.flow = contents.flow;
    this.views = contents.views;
    this.ids = contents.sides[0].trace.ids;
    let start = 0;
    for (const told of contents.sides) {
      const side = new Side(told, numbers, start, common);
      this.#sides.push(side);
      start += side.count;
    }
    this.#answers = new Map(
      contents.exchanges.map(({ path, asked, answer }) => [questionKey(path, asked), answer]),
    );
  }

  /** What stands in a saved file, in base64. */
  static async open(text: string): Promise<Recording> {
    const letters = atob(text);
    const packed = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
    const { contents, numbers } = await unpack<Contents>(packed);
    return new Recording(contents, numbers);
  }

  words(): readonly number[] {
    return this.contents.words;
  }

  holds({ block, head, part }: Pick<Place, "block" | "head" | "part">): boolean {
    const { heads, blocks, ends } = this.contents;
    const known = heads.some(([i, j]) => i === block && j === head);
    if (part === "embedding" || part === "final") return ends && known;
    return known && (part === "head" || part === "norm" || blocks.includes(block));
  }

  knows(path: string, asked: object): boolean {
    return this.#answers.has(questionKey(path, asked));
  }

  /** Whether all of a site is there, or can be made. */
  has(site: string): boolean {
    return this.#sides[0]!.has(site);
  }

  compares(site: string): boolean {
    return this.#sides.length > 1 && this.#sides.every((side) => side.keeps(site));
  }

  readonly ask: Ask = async (path, { body }) => {
    const asked = (typeof body === "string" ? JSON.parse(body) : {}) as Asked;
    const models = this.#sides.map(({ told }) => told.details);
    const named = models.filter((each, i) => models.findIndex(({ name }) => name === each.name) === i);
    const side = this.#about(asked);
    const { n_block, n_head } = side.config;
    switch (path) {
      case "/api/models":
        return Response.json({ models: named, can_be_pulled: [] });
      case "/api/open":
        return Response.json(named.find(({ name }) => name === asked.model));
      case "/api/trace":
        return Response.json(side.told.trace);
      case "/api/lens":
        return Response.json({ words: this.#lens(asked.word ?? -1) });
      case "/api/sites":
        return send(
          asked.reads!.map(({ site, weight, rows, columns }) =>
            side.read({ name: site ?? weight!, ...(rows && { rows }), ...(columns && { columns }) }),
          ),
        );
      case "/api/patterns": {
        const { values, shape } = side.get("patterns", [n_block, n_head, 1, 1]);
        const [first, last] = asked.blocks ?? [0, n_block];
        const size = values.length / n_block;
        const some = values.subarray(first * size, last * size);
        return send([{ values: some, shape: [last - first, ...shape.slice(1)] }]);
      }
      case "/api/streams":
        return send([side.get("streams", [n_block, 3, side.ids.length])]);
    }
    const answer = this.#answers.get(questionKey(path, asked));
    if (answer !== undefined) return Response.json(answer);
    return Response.json({ error: { message: `${path} is not in this file` } }, { status: 404 });
  };

  /** The page asks about the first text by its ids, about another by what it says. */
  #about({ text }: Asked): Side {
    return this.#sides.find(({ told }, i) => i > 0 && told.text === text) ?? this.#sides[0]!;
  }

  /** For each block and position the likeliest word, and how likely one is that is asked about. */
  #lens(word: number): LensWord[][] {
    const { lens, words } = this.contents;
    const { values, shape } = this.#sides[0]!.get("lens", [0, 0, 0]);
    const [, said, rows] = shape as [number, number, number];
    const at = (block: number, which: number, row: number) => values[(block * said + which) * rows + row]!;
    const chosen = words.indexOf(word);
    return lens.map((texts, block) =>
      texts.map((text, row) => ({
        text,
        probability: at(block, 0, row),
        chosen: chosen < 0 ? null : at(block, 1 + chosen, row),
      })),
    );
  }
}

/** What `zlib` made smaller: the length of the contents, the contents, and after them the first bytes of all numbers,
 * then all second bytes, and so on. */
export async function unpack<Told>(
  packed: Uint8Array<ArrayBuffer>,
): Promise<{ contents: Told; numbers: Float32Array }> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const length = new DataView(bytes.buffer).getUint32(0, true);
  const contents = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Told;
  const planes = bytes.subarray(4 + length);
  const count = planes.length / 4;
  const whole = new Uint8Array(planes.length);
  for (let k = 0; k < 4; k++) for (let i = 0; i < count; i++) whole[4 * i + k] = planes[k * count + i]!;
  return { contents, numbers: new Float32Array(whole.buffer) };
}

/** What tells a question from others about the same texts. */
export function questionKey(path: string, asked: object): string {
  const about = ["model", "text", "edits", "other"];
  return `${path} ${write(Object.fromEntries(Object.entries(asked).filter(([name]) => !about.includes(name))))}`;
}

/** As JSON, names in the order of the alphabet. */
function write(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(write).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([name, each]) => `${name}:${write(each)}`).join()}}`;
}

/** As the server sends matrices. */
function send(parts: { values: Float32Array; shape: number[] }[]): Response {
  const shapes = parts.map(({ shape }) => shape.join(",")).join(";");
  return new Response(new Blob(parts.map(({ values }) => values as Float32Array<ArrayBuffer>)), {
    headers: { "X-Shape": shapes },
  });
}
