/** How wide should the vectors be? Skip-gram models of several widths, trained the same way and evaluated on sentences they have not seen. */

import { makeRandom } from "./random";
import { countPairs, lossAndGradient, makeSkipGram, train, vocabularyOf } from "./skipGram";

export const WIDTHS = [1, 2, 4, 8, 16, 32];
const HELD_OUT = 200; // sentences
const STEPS = 100;
const WINDOW = 2;

const PEOPLE = ["I", "you", "we", "they"];
const OPENINGS = [
  "forgot to make sure that",
  "have to make sure that",
  "want to make sure that",
  "know that",
  "hope that",
];
const GROUPS = [
  { things: ["cat", "dog", "horse", "rabbit"], done: ["fed", "brushed", "petted"] },
  { things: ["car", "truck", "bike", "boat"], done: ["washed", "parked", "repaired"] },
  { things: ["rose", "tree", "lawn", "hedge"], done: ["watered", "planted", "cut"] },
];

/** Sentences such as "I forgot to make sure that the dog gets fed". */
export function makeSentences(count: number, seed: number): string[][] {
  const random = makeRandom(seed);
  const choose = <T>(options: readonly T[]): T => options[Math.floor(random() * options.length)]!;
  return Array.from({ length: count }, () => {
    const [person, opening, group] = [choose(PEOPLE), choose(OPENINGS), choose(GROUPS)];
    const [thing, done] = [choose(group.things), choose(group.done)];
    return `${person} ${opening} the ${thing} gets ${done}`.split(" ");
  });
}

export interface SweepSettings {
  sentences: number; // to train on
  seed: number;
}

export interface SweepPoint {
  width: number;
  training: number; // loss
  heldOut: number; // loss
}

/** Trains a model of one width. The held-out sentences are the same for every width. */
export function trainWidth(width: number, { sentences, seed }: SweepSettings): SweepPoint {
  const made = makeSentences(sentences + HELD_OUT, seed);
  const vocabulary = vocabularyOf(made);
  const training = countPairs(made.slice(0, sentences), vocabulary, WINDOW);
  const heldOut = countPairs(made.slice(sentences), vocabulary, WINDOW);
  const model = makeSkipGram(vocabulary.length, width, seed);
  train(model, training, STEPS);
  return {
    width,
    training: lossAndGradient(model, training).loss,
    heldOut: lossAndGradient(model, heldOut).loss,
  };
}

/** The widths whose held-out loss is lowest when rounded to this many decimals. */
export function bestWidths(points: readonly SweepPoint[], decimals: number): number[] {
  const best = Math.min(...points.map(({ heldOut }) => heldOut)).toFixed(decimals);
  return points.filter(({ heldOut }) => heldOut.toFixed(decimals) === best).map(({ width }) => width);
}
