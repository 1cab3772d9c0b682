/** Two heads that complete A B … A with B, on streams of one-hot letters: an induction circuit. */

import { type Rows, softmax } from "./tinyHead";
import { dot } from "./workedNumbers";

export const LETTERS = ["A", "B", "C", "D"];
const BOOST = 10; // of the keys, and of what the prediction reads

/** Which heads work; an ablated one writes zeros. */
export interface WorkingHeads {
  previous: boolean;
  induction: boolean;
}

/** Each token's stream has three parts, by rows. The first token is the start of the text, which is not a letter. */
export interface InductionSteps {
  own: Rows; // the token's letter
  before: Rows; // written by the previous-token head: the letter before it
  copied: Rows; // written by the induction head: the letter that followed
  previousWeights: Rows;
  inductionWeights: Rows;
  prediction: number[]; // the probability of each letter after the last token
}

export function runInduction(sequence: string, { previous, induction }: WorkingHeads): InductionSteps {
  const own = ["", ...sequence].map((token) => LETTERS.map((letter) => (letter === token ? 1 : 0)));
  const positions = own.map((_, i) => i);
  const previousWeights = attention(positions, (i, j) => (j === i - 1 ? BOOST : 0));
  const before = write(previousWeights, own, previous);
  const inductionWeights = attention(positions, (i, j) => BOOST * dot(own[i]!, before[j]!));
  const copied = write(inductionWeights, own, induction);
  const prediction = softmax(copied.at(-1)!.map((value) => BOOST * value));
  return { own, before, copied, previousWeights, inductionWeights, prediction };
}

/** The softmax of each row of scores, up to the diagonal. */
function attention(positions: number[], score: (i: number, j: number) => number): Rows {
  return positions.map((i) => softmax(positions.map((j) => (j > i ? -Infinity : score(i, j)))));
}

function write(weights: Rows, values: Rows, works: boolean): Rows {
  return weights.map((row) =>
    LETTERS.map((_, k) => (works ? row.reduce((sum, weight, j) => sum + weight * values[j]![k]!, 0) : 0)),
  );
}
