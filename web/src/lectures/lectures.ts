/** The lectures in order. To add one, add its file here, its texts to `messages`, and its figures to `views`. */

import QUESTIONS from "../../../src/clearhead/lectures/questions.json";
import { lecture000 } from "./lecture000";
import { lecture001 } from "./lecture001";
import { lecture002 } from "./lecture002";
import type { Lecture, Stop } from "./types";

export const LECTURES: readonly Lecture[] = [lecture000, lecture001, lecture002];
/** The built-in model, whose tokens are the words that the stops use. */
export const WORD_MODEL = "stories";

const STOPS = LECTURES.flatMap(({ stops }) => stops);

const DIGITS = QUESTIONS as Record<string, { digits?: number }>;

/** How many decimals the solution of a stop shows. */
export function digitsOf(id: string): number {
  return DIGITS[id]?.digits ?? 0;
}

/** The stop with this id or, for the id of a lecture, its first stop. */
function lookUp(id: string): Stop | undefined {
  return STOPS.find((stop) => stop.id === id) ?? LECTURES.find((lecture) => lecture.id === id)?.stops[0];
}

export function isStop(id: string): boolean {
  return lookUp(id) !== undefined;
}

/** The stop that this id opens; the first one if there is none. */
export function findStop(id: string): Stop {
  return lookUp(id) ?? STOPS[0]!;
}

/** The first stop whose question is not answered yet; the first one if all are. */
export function firstUnanswered(answered: readonly string[]): Stop {
  return STOPS.find(({ id }) => !answered.includes(id)) ?? STOPS[0]!;
}

/** The stop after or before another, through all lectures; null at either end. */
export function nextStop(id: string, by: number): Stop | null {
  return STOPS[STOPS.indexOf(findStop(id)) + by] ?? null;
}
