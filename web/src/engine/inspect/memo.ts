/** Values that are computed on first access. */

import type { Matrix } from "../../model/matrix";

export class Memo {
  readonly #values = new Map<string, Matrix>();

  get(name: string, compute: () => Matrix): Matrix {
    let value = this.#values.get(name);
    if (!value) this.#values.set(name, (value = compute()));
    return value;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }
}
