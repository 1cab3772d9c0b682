/** A small network with made-up weights. */

import { ReferenceKernels } from "../../../src/engine/kernels/reference";
import { Transformer } from "../../../src/engine/model/transformer";
import { CONFIG } from "../../config";

const SIZES = { n_vocab: 17, n_context: 32 };
const CONFIG_WITH_VOCABULARY = { ...CONFIG, ...SIZES, tied: true, embedding_scale: 1, norm_epsilon: 1e-6 };

export function makeNetwork(): Transformer {
  const { d_model, d_hidden, d_head, n_head, n_kv_head, n_vocab } = CONFIG_WITH_VOCABULARY;
  const shapes: Record<string, [number, number]> = {
    embedding: [n_vocab, d_model],
    query: [n_head * d_head, d_model],
    key: [n_kv_head * d_head, d_model],
    value: [n_kv_head * d_head, d_model],
    output: [d_model, n_head * d_head],
    first: [d_hidden, d_model],
    gate: [d_hidden, d_model],
    second: [d_model, d_hidden],
  };
  const kernels = new ReferenceKernels();
  return new Transformer(CONFIG_WITH_VOCABULARY, {
    kernels,
    weight: (name) => {
      const [rows, columns] = shapes[name.split(".").at(-2)!]!;
      const weight = kernels.allocate(rows, columns, "float32");
      const numbers = Float32Array.from({ length: rows * columns }, (_, i) =>
        Math.sin(1.7 * i + name.length),
      );
      weight.write(0, new Uint8Array(numbers.buffer));
      return weight;
    },
    vector: () => new Float32Array(d_model).fill(1),
  });
}
