/** Which earlier words decide the next one: a counted model, and what it predicts with one word left out. */

import { bareWords } from "./countedNgram";

export interface Candidate {
  word: string;
  probability: number;
}

/**
 * The next word given any earlier words, counted from lines whose last word is to be predicted.
 *
 * Naive Bayes: a candidate's score is the number of lines that end in it, times, for each given word, the share of those
 * lines that contain the word. One line with and one without it are added, so that no share is 0. Words that occur in no line
 * are ignored.
 */
export function predictNext(text: string, past: readonly string[]): Candidate[] {
  const lines = text
    .split("\n")
    .map(bareWords)
    .filter((words) => words.length > 1)
    .map((words) => ({ past: new Set(words.slice(0, -1)), next: words.at(-1)! }));
  const known = past.filter((word) => lines.some((line) => line.past.has(word)));
  const candidates = [...new Set(lines.map(({ next }) => next))].map((word) => {
    const ending = lines.filter(({ next }) => next === word);
    const share = (given: string) =>
      (ending.filter((line) => line.past.has(given)).length + 1) / (ending.length + 2);
    return { word, probability: known.reduce((product, given) => product * share(given), ending.length) };
  });
  const total = candidates.reduce((sum, { probability }) => sum + probability, 0);
  return candidates
    .map(({ word, probability }) => ({ word, probability: probability / total }))
    .sort((a, b) => b.probability - a.probability);
}

export function probabilityOf(word: string, candidates: readonly Candidate[]): number {
  return candidates.find((candidate) => candidate.word === word)?.probability ?? 0;
}

/** For each earlier word: the probability of the next word, minus its probability without that word. */
export function effectsOf(text: string, past: readonly string[], next: string): number[] {
  const all = probabilityOf(next, predictNext(text, past));
  return past.map((_, i) => all - probabilityOf(next, predictNext(text, past.toSpliced(i, 1))));
}
