/** A model's weights: loads the pieces that `clearhead publish` wrote, checks them, and fills the matrices. */

import { ApiError } from "../client";
import { byteLength, type Kernels, type NumberType, type Weight } from "../kernels/kernels";
import { changed, damaged, notLoaded, type ReadModelFile } from "./files";
import { sha256 } from "./sha256";

export const INDEX_FILE = "weights.json";

/** The contents of `weights.json`. Pieces are parts of one stream of bytes. */
export interface WeightIndex {
  format: number;
  numbers: NumberType; // of the matrices
  bytes: number;
  tensors: TensorEntry[];
  pieces: PieceEntry[];
}

interface TensorEntry {
  name: string; // as in the network, such as blocks.0.attention.query.weight
  shape: [number] | [number, number];
  type: NumberType;
  start: number; // in the stream, in bytes
  scales?: number; // where the scales of the rows start, if the type is int8
}

interface PieceEntry {
  file: string;
  bytes: number;
  sha256: string;
}

export type OnProgress = (done: number, total: number) => void; // bytes

const FORMAT = 1;
const PIECES_AHEAD = 3; // requested at the same time

/** The tensors of a network by name. A tied unembedding is the embedding itself. */
export class Weights {
  readonly #matrices = new Map<string, Weight>();
  readonly #vectors = new Map<string, Float32Array>();
  readonly #parts: StreamPart[] = [];

  private constructor(
    index: WeightIndex,
    readonly kernels: Kernels,
  ) {
    for (const entry of index.tensors) this.#allocate(entry);
  }

  /** Throws an ApiError that names the file if one is missing or damaged. */
  static async load(
    index: WeightIndex,
    kernels: Kernels,
    readFile: ReadModelFile,
    onprogress: OnProgress = () => undefined,
  ): Promise<Weights> {
    checkIndex(index);
    const weights = Weights.#reserve(index, kernels);
    const arrived = index.pieces.map(() => 0);
    const read = (i: number) => {
      const { file, bytes: length } = index.pieces[i]!;
      const count = (done: number) => {
        arrived[i] = done;
        onprogress(
          arrived.reduce((sum, bytes) => sum + bytes, 0),
          index.bytes,
        );
      };
      const piece = readFile(file, count, length);
      piece.catch(() => undefined); // reported when it is awaited
      return piece;
    };
    const pending = Array.from({ length: Math.min(PIECES_AHEAD, index.pieces.length) }, (_, i) => read(i));
    for (let i = 0, start = 0; i < index.pieces.length; i++) {
      const bytes = await checked(index.pieces[i]!, pending.shift()!);
      if (i + PIECES_AHEAD < index.pieces.length) pending.push(read(i + PIECES_AHEAD));
      weights.#write(start, bytes);
      start += bytes.length;
    }
    return weights;
  }

  static #reserve(index: WeightIndex, kernels: Kernels): Weights {
    try {
      return new Weights(index, kernels);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error; // as the browser reports a lack of memory
      const megabytes = Math.ceil(index.bytes / 1e6);
      const message = `this model needs ${megabytes} MB of memory, more than this browser allows: choose a smaller one`;
      throw new ApiError(507, message, "no_memory", { megabytes });
    }
  }

  has(name: string): boolean {
    return this.#matrices.has(name) || this.#vectors.has(name);
  }

  weight(name: string): Weight {
    const found = this.#matrices.get(name);
    if (!found && name === "unembedding.weight") return this.weight("embedding.weight");
    if (!found) throw new Error(`no matrix ${name}`);
    return found;
  }

  vector(name: string): Float32Array {
    const found = this.#vectors.get(name);
    if (!found) throw new Error(`no vector ${name}`);
    return found;
  }

  #allocate({ name, shape: [rows, columns], type, start, scales }: TensorEntry): void {
    if (columns === undefined) {
      const vector = new Float32Array(rows);
      this.#vectors.set(name, vector);
      this.#parts.push(streamPart(start, vector));
      return;
    }
    const W = this.kernels.allocate(rows, columns, type);
    this.#matrices.set(name, W);
    this.#parts.push({ start, length: byteLength(W), write: (at, bytes) => W.write(at, bytes) });
    if (scales !== undefined) this.#parts.push(streamPart(scales, W.scales));
  }

  /** Writes some bytes of the stream to the tensors that they belong to. */
  #write(start: number, bytes: Uint8Array): void {
    for (const part of this.#parts) {
      const first = Math.max(start, part.start);
      const last = Math.min(start + bytes.length, part.start + part.length);
      if (first < last) part.write(first - part.start, bytes.subarray(first - start, last - start));
    }
  }
}

/** A part of the stream, and where its bytes go. */
interface StreamPart {
  start: number;
  length: number;
  write: (at: number, bytes: Uint8Array) => void;
}

function streamPart(start: number, numbers: Float32Array): StreamPart {
  const target = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  return { start, length: target.length, write: (at, bytes) => target.set(bytes, at) };
}

async function checked(
  { file, bytes: length, sha256: expected }: PieceEntry,
  reading: Promise<Uint8Array<ArrayBuffer>>,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await reading.catch((error: unknown) => {
    throw notLoaded(file, error);
  });
  if (bytes.length !== length) throw damaged(file, `it has ${bytes.length} bytes, expected ${length}`);
  if ((await sha256(bytes)) !== expected) throw changed(file);
  return bytes;
}

function checkIndex(index: WeightIndex): void {
  const total = (sizes: number[]) => sizes.reduce((sum, size) => sum + size, 0);
  if (index.format !== FORMAT)
    throw damaged(INDEX_FILE, `its format is ${index.format ?? "missing"}, expected ${FORMAT}`);
  const bytes = total(index.pieces.map((piece) => piece.bytes));
  const needed = total(
    index.tensors.map(
      ({ shape: [rows, columns = 1], type, scales }) =>
        byteLength({ rows, columns, type }) + (scales === undefined ? 0 : 4 * rows),
    ),
  );
  if (bytes !== index.bytes || needed !== index.bytes)
    throw damaged(
      INDEX_FILE,
      `its pieces have ${bytes} bytes and its tensors ${needed}, expected ${index.bytes}`,
    );
}
