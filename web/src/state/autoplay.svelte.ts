/** Steps that follow one another by themselves, as long as there is a next one. */

const PAUSE = 2200; // milliseconds of a step

export class Player {
  playing = $state(false);
  #next: ReturnType<typeof setTimeout> | undefined;

  /** `goOn` takes the next step and says whether there was one. */
  constructor(readonly goOn: () => boolean) {}

  /** Play, or pause. */
  toggle(): void {
    this.playing = !this.playing;
    clearTimeout(this.#next);
    if (this.playing) this.#wait();
  }

  #wait(): void {
    this.#next = setTimeout(() => {
      if (!this.playing) return;
      if (this.goOn()) this.#wait();
      else this.playing = false;
    }, PAUSE);
  }
}
