/** The loss of one next word: the cross-entropy of its softmax, and the gradient with respect to the logits. */

import { softmax } from "./tinyHead";

export interface NextWordLoss {
  p: number[];
  y: number[]; // 1 for the word that comes next, 0 for the others
  loss: number; // -ln p of that word
  gradient: number[]; // p - y
}

export function nextWordLoss(logits: readonly number[], target: number): NextWordLoss {
  const p = softmax([...logits]);
  const y = p.map((_, i) => (i === target ? 1 : 0));
  const largest = Math.max(...logits);
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0);
  const loss = Math.log(total) + largest - logits[target]!; // finite even where p rounds to 0
  return { p, y, loss, gradient: p.map((each, i) => each - y[i]!) };
}

/** The logits after a step of gradient descent. */
export function descend(logits: readonly number[], gradient: readonly number[], rate: number): number[] {
  return logits.map((logit, i) => logit - rate * gradient[i]!);
}

/** The loss before each of these steps, and after the last one. */
export function lossCurve(logits: readonly number[], target: number, rate: number, steps: number): number[] {
  const { loss, gradient } = nextWordLoss(logits, target);
  return steps === 0
    ? [loss]
    : [loss, ...lossCurve(descend(logits, gradient, rate), target, rate, steps - 1)];
}
