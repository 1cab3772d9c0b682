/** What the reader did in the lectures: inputs of figures, and questions answered. */

import { firstUnanswered } from "../lectures/lectures";
import type { Stop } from "../lectures/types";

const STORED = "lectures"; // the key in the browser's storage

export class LectureState {
  answered = $state.raw<readonly string[]>(readAnswered()); // ids of the stops whose question was answered
  readonly opening = firstUnanswered(this.answered).id; // the stop to open if the address names none
  #inputs: Record<string, object> = {}; // by the stop's id, or by what it shares

  /** The inputs of a stop's figure, which are kept while the page is open. */
  inputsOf<Inputs extends object>({ id, shares = id, inputs }: Stop<Inputs>): Inputs {
    if (shares in this.#inputs) return this.#inputs[shares] as Inputs;
    const made = $state(structuredClone(inputs));
    this.#inputs[shares] = made;
    return made;
  }

  reset(stop: Stop): void {
    Object.assign(this.inputsOf(stop), structuredClone(stop.inputs));
  }

  markAnswered(id: string): void {
    if (this.answered.includes(id)) return;
    this.answered = [...this.answered, id];
    try {
      localStorage.setItem(STORED, JSON.stringify(this.answered));
    } catch {
      // Without storage, such as in some notebooks, progress lasts as long as the page.
    }
  }
}

function readAnswered(): readonly string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? "[]");
    return Array.isArray(stored) ? stored.filter((id) => typeof id === "string") : [];
  } catch {
    return [];
  }
}
