/** A set of texts, each with a number, for finding those that start at a position. */
export class Trie {
  readonly #children = new Map<number, number>(); // node * 2^16 + UTF-16 code unit → node
  readonly #values: (number | undefined)[] = [undefined];

  get isEmpty(): boolean {
    return this.#children.size === 0;
  }

  /** Adds a text, or replaces its number. */
  add(text: string, value: number): void {
    let node = 0;
    for (let i = 0; i < text.length; i++) {
      const key = node * 2 ** 16 + text.charCodeAt(i);
      let child = this.#children.get(key);
      if (child === undefined) {
        child = this.#values.push(undefined) - 1;
        this.#children.set(key, child);
      }
      node = child;
    }
    this.#values[node] = value;
  }

  /** Calls `found` with the end and the number of each text that starts here, the shortest first. */
  search(text: string, start: number, found: (stop: number, value: number) => void): void {
    let node: number | undefined = 0;
    for (let i = start; i < text.length; i++) {
      node = this.#children.get(node * 2 ** 16 + text.charCodeAt(i));
      if (node === undefined) return;
      const value = this.#values[node];
      if (value !== undefined) found(i + 1, value);
    }
  }
}
