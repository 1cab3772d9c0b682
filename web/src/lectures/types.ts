/** A lecture is a list of stops. Their texts are in `messages`, and their figures in `views/lectures`. */

import type { PageLocation, ViewName } from "../state/location";

export type Question = { kind: "number"; answer: number } | { kind: "choice"; answer: number }; // the index of the correct option

/** Where a stop's link leads. */
export type Target = Partial<Omit<PageLocation, "sampling" | "edits">> & { view: ViewName };

export interface Stop<Inputs extends object = object> {
  id: string; // such as 001.4: the lecture and the number of the stop
  inputs: Inputs; // the initial values of what the reader can change in the figure
  shares?: string; // stops with the same name here share their inputs
  question: Question;
  link?: {
    live?: boolean; // whether it needs a server
    target(inputs: Inputs): Target;
  };
}

export interface Lecture {
  id: string;
  stops: readonly Stop[];
}
