/** A queue of numbers, of which the smallest comes first. */
export class MinHeap {
  readonly #values: Float64Array;
  #size = 0;

  constructor(capacity: number) {
    this.#values = new Float64Array(capacity);
  }

  get size(): number {
    return this.#size;
  }

  push(value: number): void {
    const values = this.#values;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (values[parent]! <= value) break;
      values[at] = values[parent]!;
      at = parent;
    }
    values[at] = value;
  }

  /** Removes the smallest number; there must be one. */
  pop(): number {
    const values = this.#values;
    const smallest = values[0]!;
    const size = --this.#size;
    const moved = values[size]!;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && values[child + 1]! < values[child]!) child++;
      if (values[child]! >= moved) break;
      values[at] = values[child]!;
      at = child;
    }
    values[at] = moved;
    return smallest;
  }
}
