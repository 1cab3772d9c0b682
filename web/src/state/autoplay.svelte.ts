/** Advances through the steps on a timer until there is no next one. */

const INTERVAL = 4000; // milliseconds per step

export class Autoplay {
  playing = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `advance` takes the next step and returns whether there was one. */
  constructor(readonly advance: () => boolean) {}

  toggle(): void {
    this.playing = !this.playing;
    clearTimeout(this.#timer);
    if (this.playing) this.#schedule();
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      if (!this.playing) return;
      if (this.advance()) this.#schedule();
      else this.playing = false;
    }, INTERVAL);
  }
}
