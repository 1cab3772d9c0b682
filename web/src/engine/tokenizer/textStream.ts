/** Streaming detokenization: the text that each id adds, never with half a character. */

import type { Tokenizer } from "./tokenizer";

// An incomplete character has at most three bytes, shown as at most three U+FFFD.
const HOLD = 3;
// Even for invalid bytes, this many tokens always cover the last three U+FFFD.
const KEEP = 16;

/** Decodes ids to text, piece by piece, holding back what may be an incomplete character.
 *
 * With `continues`, the ids continue a text: some decoders drop the space at the start of a text.
 */
export class TextStream {
  #ids: number[] = [];
  #shown = 0; // UTF-16 code units of decode(ids) that were returned

  constructor(
    readonly tokenizer: Tokenizer,
    continues = false,
  ) {
    if (continues) this.#goOn();
  }

  /** The text that this id completes. */
  push(id: number): string {
    if (!this.tokenizer.hasText(id)) return "";
    this.#ids.push(id);
    const text = this.tokenizer.decode(this.#ids);
    const held = Math.min(/\ufffd*$/.exec(text)![0].length, HOLD);
    const piece = text.slice(this.#shown, text.length - held);
    this.#shown += piece.length;
    if (held === 0) this.#goOn();
    else if (this.#ids.length >= 2 * KEEP) {
      this.#ids = this.#ids.slice(-KEEP);
      this.#shown = this.tokenizer.decode(this.#ids).length - held;
    }
    return piece;
  }

  /** The text that was held back. */
  close(): string {
    const piece = this.tokenizer.decode(this.#ids).slice(this.#shown);
    [this.#ids, this.#shown] = [[], 0];
    return piece;
  }

  /** Replaces the ids that were shown with a single letter, since what follows is not the start of a text. */
  #goOn(): void {
    const { letter } = this.tokenizer;
    this.#ids = letter === null ? [] : [letter];
    this.#shown = this.tokenizer.decode(this.#ids).length;
  }
}
