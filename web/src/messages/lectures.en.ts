/** The lectures in English: the texts of every stop, and the labels of the figures. */

import QUESTIONS from "../../../src/clearhead/lectures/questions.json";
import { FIGURES_000, STOPS_000 } from "./lecture000.en";
import { STOPS_001 } from "./lecture001.en";
import { FIGURES_002, STOPS_002 } from "./lecture002.en";

/** The texts of a stop that belong to its figure. Formulas are in TeX between dollar signs. */
export interface StopProse {
  idea: string; // two or three sentences
  notice: string;
  notes: string; // for the speaker
}

export interface StopText extends StopProse {
  title: string;
  question: string;
  options?: string[];
  hint: string; // after a wrong answer
  solution: string; // {answer} stands for the answer
}

const PROSE: Record<string, StopProse> = { ...STOPS_000, ...STOPS_001, ...STOPS_002 };

/** The titles and questions are those of the terminal, which reads the same file. */
const STOPS = Object.entries(QUESTIONS).map(([id, question]): [string, StopText] => [
  id,
  { ...question, ...PROSE[id]! },
]);

export const lectures = {
  list: "Stops",
  names: {
    "000": "From static to contextual embeddings, and the transformer block",
    "001": "Transformers by worked numbers",
    "002": "One attention head, by matrices",
  } as Record<string, string>,
  stops: Object.fromEntries(STOPS),
  progress: (answered: number, all: number) => `${answered} of ${all} answered`,
  answered: "answered",
  back: "← Previous stop",
  next: "Next stop →",
  present: "Present",
  presentSays: "Show this stop in large type, one part at a time (p)",
  presenting: (stop: string) => `Presenting stop ${stop}`,
  leave: "Leave",
  leaveSays: "Leave the presentation (Escape)",
  keys: "→ next part · ← back · n notes · Esc leave",
  notes: "Speaker notes",
  figure: "Figure",
  needsText: "This figure needs a text. Type one at the top of the page.",
  notWords: (model: string, usual: string) =>
    `The tokens of ${model} are parts of words here. This stop was designed for ${usual}, whose tokens are whole words.`,
  notice: "What to notice",
  question: "Question",
  answer: "Your answer",
  check: "Check",
  right: "Right.",
  wrong: (hint: string) => `Not quite. ${hint}`,
  unread: "Enter a number, such as 0.5 or 1/2.",
  solution: "Show the solution",
  reset: "Reset",
  openIn: (view: string) => `Open in ${view}`,
  blank: "This is not a number. The previous number is used until you enter one.",
  sequence: "Sequence",
  digits: (most: number) => `Enter 1 to ${most} digits, each 0 or 1.`,
  entry: (matrix: string, row: number, column: number) => `${matrix}, row ${row}, column ${column}`,
  component: (vector: string, i: number) => `${vector}, component ${i}`,
  zeros: "Zeros",
  boost: "Key boost",
  token: "token",
  figures000: FIGURES_000,
  figures002: FIGURES_002,
  figures: {
    text: "Text to count, one sentence per line",
    sentence: "Sentence",
    known: "What the model knows",
    pasts: {
      "1": "unigram: nothing",
      "2": "bigram: the last token",
      "3": "trigram: the last two tokens",
      all: "the whole context, counted",
      model: "this model: every earlier token, after training",
    },
    ofModel: (model: string) =>
      `The probabilities that ${model} gives the text at the top of the page. Nothing precedes the first token, so the product starts at the second.`,
    past: "context the model knows",
    probability: "probability",
    product: "product so far",
    more: (count: number) => `… ${count} more`,
    wholeText: "the whole text",
    estimated:
      "RNNs and transformers estimate these probabilities from the whole context and hardly ever give 0.",
    start: "start",
    vectors: "input",
    rnn: "RNN",
    transformer: "attention",
    moved: "An outlined row differs from the output for the sentence's own vectors.",
    bats: (one: string, other: string) =>
      `“bats” after attention: ${one} here, ${other} in the other sentence.`,
    steps: "Training steps",
    seed: "Seed",
    inState: "probe of the RNN's state",
    inAttended: "probe of attention's output",
    after: (zeros: string) => `after ${zeros} zeros`,
    accuracy: "accuracy of the probe",
    cells: "Mean state of the RNN after a 1 and zeros, minus that after a 0 and zeros, cell by cell",
    probes: (noise: string) =>
      `At each cell, a linear probe looks for the first digit, 0 or 1, in new sequences; chance is 0.5. Digits have noise of up to ±${noise}; keys are multiplied by 10.`,
    base: "Base of the softmax",
    query: "Query",
    key: "key",
    score: "score",
    power: "power",
    weights: "weight",
    attended: "with attention",
    plain: "plain average",
    oneWeight: "weight on the 1",
    zeroWeight: "weight on each 0",
    allZeros: "weight on all 0s together",
    unboosted: "plain keys",
    current: "your keys",
    k: "key",
    q: "query",
    W_K: "key matrix",
    W_Q: "query matrix",
    W_V: "value matrix",
    W_O: "output matrix",
    dotProduct: "dot product",
    linear: "“linear” attention",
    onKey: "$W$ applied to the key",
    onQuery: "$W$ applied to the query",
    both: "$W^K$ and $W^Q$, as in a transformer",
    seeks: (digit: string, sought: string, weight: string) =>
      `Each ${digit} looks for ${sought} and puts ${weight} of its weight on them.`,
    seeksNothing: (digit: string) => `Each ${digit} gives all tokens the same weight.`,
    zerosSought: "0s",
    onesSought: "1s",
    cases: ["Each digit looks for itself", "Both look for a 1"],
    case: "Queries",
    divided: "divide by $\\sqrt{d_k}$",
    mask: "mask the future",
    positions: "add positions",
    original: "in this order",
    swapped: "with the first two tokens swapped",
    weightsOf: (which: string) => `weights ${which}`,
    lastOutput: "Output of the last token",
    same: "The last token gets the same output: it cannot tell in which order the others came.",
    different: "The last token gets different outputs: it can tell in which order the others came.",
    unswappable:
      "Swapping the first two tokens changes nothing if they are equal. Enter a sequence that starts with 01 or 10.",
    future: "Every token also attends to the tokens after it, including the one it is supposed to predict.",
    pastOnly: "Every token attends only to itself and to the tokens before it.",
  },
};
