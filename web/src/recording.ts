/** What a saved file answers in a model's place: numbers that were kept in it, and what the page's own formulas
 * make of those. Where there is neither, a number is NaN. */

import { type Area, isOfWords, isWeight, parse, type Span } from "./cells";
import { derive, evaluate } from "./derivation";
import { Matrix } from "./matrix";
import type { Kept } from "./page.svelte";
import type { Place } from "./address";
import type { Ask, Config } from "./server";
import { shapeOf } from "./shapes";

/** What stands before the numbers: what they are, in their order, and whole answers by their path. */
export interface Contents {
  query: string; // where it opens
  config: Config;
  ids: number[];
  flow: boolean;
  heads: [number, number][];
  blocks: number[];
  ends: boolean; // embedding and final norm
  answers: Record<string, unknown>;
  matrices: { name: string; shape: number[]; first: number }[]; // from which row on
}

interface Numbers {
  values: Float32Array;
  shape: number[];
  first: number;
}

export class Recording implements Kept {
  readonly flow: boolean;
  #kept = new Map<string, Numbers>();
  #made = new Map<string, Matrix | null>();
  #makeable = new Map<string, boolean>();
  #turned = new Map<string, Matrix>(); // with rows and columns exchanged

  constructor(
    readonly contents: Contents,
    numbers: Float32Array,
  ) {
    this.flow = contents.flow;
    let start = 0;
    for (const { name, shape, first } of contents.matrices) {
      const count = shape.reduce((product, size) => product * size, 1);
      this.#kept.set(name, { values: numbers.subarray(start, start + count), shape, first });
      start += count;
    }
  }

  /** In base64 what `zlib` made smaller: the length of the contents, the contents, and after them the first bytes of
   * all numbers, then all second bytes, and so on. */
  static async open(text: string): Promise<Recording> {
    const letters = atob(text);
    const packed = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) packed[i] = letters.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
    const length = new DataView(bytes.buffer).getUint32(0, true);
    const contents = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))) as Contents;
    const planes = bytes.subarray(4 + length);
    const count = planes.length / 4;
    const whole = new Uint8Array(planes.length);
    for (let k = 0; k < 4; k++) for (let i = 0; i < count; i++) whole[4 * i + k] = planes[k * count + i]!;
    return new Recording(contents, new Float32Array(whole.buffer));
  }

  holds({ block, head, part }: Pick<Place, "block" | "head" | "part">): boolean {
    const { heads, blocks, ends } = this.contents;
    const known = heads.some(([i, j]) => i === block && j === head);
    if (part === "embedding" || part === "final") return ends && known;
    return known && (part === "head" || part === "norm" || blocks.includes(block));
  }

  readonly ask: Ask = async (path, { body }) => {
    if (path in this.contents.answers) return Response.json(this.contents.answers[path]);
    const asked = (typeof body === "string" ? JSON.parse(body) : {}) as {
      reads?: { site?: string; weight?: string; rows?: Span; columns?: Span }[];
      blocks?: Span;
    };
    if (path === "/api/sites" && asked.reads) {
      return send(
        asked.reads.map(({ site, weight, rows, columns }) =>
          this.read({ name: site ?? weight!, ...(rows && { rows }), ...(columns && { columns }) }),
        ),
      );
    }
    const { n_block, n_head } = this.contents.config;
    if (path === "/api/patterns") {
      const { values, shape } = this.#kept.get("patterns") ?? empty([n_block, n_head, 1, 1]);
      const [first, last] = asked.blocks ?? [0, n_block];
      const size = values.length / n_block;
      return send([
        { values: values.subarray(first * size, last * size), shape: [last - first, ...shape.slice(1)] },
      ]);
    }
    if (path === "/api/streams")
      return send([this.#kept.get("streams") ?? empty([n_block, 3, this.contents.ids.length])]);
    return Response.json({ error: { message: `${path} is not in this file` } }, { status: 404 });
  };

  /** A part of a site or a weight. */
  read(area: Area): { values: Float32Array; shape: number[] } {
    const matrix = this.#whole(area.name);
    const rows = area.rows ?? [0, matrix ? matrix.firstRow + matrix.rows : 1]; // kept are last rows, or all
    const columns = area.columns ?? (matrix ? [0, matrix.columns] : [0, 1]);
    const shape = [rows[1] - rows[0], columns[1] - columns[0]];
    if (!matrix) return empty(shape);
    const within = rows[0] >= matrix.firstRow && rows[1] <= matrix.firstRow + matrix.rows;
    if (within && columns[1] <= matrix.columns) return { values: matrix.cut(rows, columns).values, shape };
    const values = Float32Array.from({ length: shape[0]! * shape[1]! }, (_, i) =>
      matrix.at(rows[0] + Math.floor(i / shape[1]!), columns[0] + (i % shape[1]!)),
    );
    return { values, shape };
  }

  /** All of a site or a weight, or nothing where it was not kept and cannot be made. */
  #whole(name: string): Matrix | null {
    const kept = this.#kept.get(name);
    let made = this.#made.get(name);
    if (made !== undefined) return made;
    if (kept) {
      const [rows, columns = 1] = kept.shape;
      made = new Matrix(kept.values, rows!, columns, kept.first);
    } else made = this.#canMake(name) ? this.#make(name) : null;
    this.#made.set(name, made);
    return made;
  }

  #canMake(name: string): boolean {
    const known = this.#makeable.get(name);
    if (known !== undefined) return known;
    const { config, ids } = this.contents;
    const can =
      !isWeight(name) &&
      !isOfWords(parse(name).part) &&
      // What its first number was computed from; the names are the same for all others.
      derive(config, ids, { name, row: 0, column: 0 }).from.every(
        (area) => this.#kept.has(area.name) || this.#canMake(area.name),
      );
    this.#makeable.set(name, can);
    return can;
  }

  #make(name: string): Matrix {
    const { config, ids } = this.contents;
    const [rows, columns] = shapeOf(config, ids.length, name);
    const values = new Float32Array(rows * columns);
    for (let row = 0, i = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, i++) {
        const derivation = derive(config, ids, { name, row, column });
        const lines = derivation.from.map((area) => this.#line(area));
        values[i] = derivation.how === "dot" ? dot(lines) : evaluate(derivation, config, lines.map(plain));
      }
    }
    return new Matrix(values, rows, columns);
  }

  /** A row, a column, or a single number. */
  #line({ name, rows, columns }: Area): Line {
    const matrix = this.#whole(name)!;
    if (rows && (columns || matrix.columns === 1)) return [matrix.at(rows[0], columns?.[0] ?? 0)];
    if (!columns) return matrix.row(rows![0]);
    let turned = this.#turned.get(name);
    if (!turned) this.#turned.set(name, (turned = turn(matrix)));
    return turned.row(columns[0]);
  }
}

type Line = Float32Array | number[];

/** Most of the work by far. */
function dot([left, right, bias]: Line[]): number {
  let sum = bias?.[0] ?? 0;
  for (let i = 0; i < left!.length; i++) sum += left![i]! * right![i]!;
  return sum;
}

function plain(line: Line): number[] {
  return Array.isArray(line) ? line : Array.from(line);
}

function turn(matrix: Matrix): Matrix {
  const values = new Float32Array(matrix.values.length);
  for (let i = 0; i < matrix.rows; i++)
    for (let j = 0; j < matrix.columns; j++)
      values[j * matrix.rows + i] = matrix.values[i * matrix.columns + j]!;
  return new Matrix(values, matrix.columns, matrix.rows);
}

function empty(shape: number[]): Numbers {
  const count = shape.reduce((product, size) => product * size, 1);
  return { values: new Float32Array(count).fill(NaN), shape, first: 0 };
}

/** As the server sends matrices. */
function send(parts: { values: Float32Array; shape: number[] }[]): Response {
  const shapes = parts.map(({ shape }) => shape.join(",")).join(";");
  return new Response(new Blob(parts.map(({ values }) => values as Float32Array<ArrayBuffer>)), {
    headers: { "X-Shape": shapes },
  });
}
