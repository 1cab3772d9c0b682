/** The texts of the learning view in English. */

import type { Direction } from "../model/update";

export const learning = {
  summary: (loss: string, targets: number) =>
    `Loss ${loss}, the mean of $-\\ln P$ over ${targets} ${targets === 1 ? "prediction" : "predictions"}`,
  optimizers: { muon: "Muon", adamw: "AdamW" } as Record<string, string>,
  recipe: (optimizer: string, rate: string) => `${optimizer}, learning rate ${rate}`,
  norm: (norm: string, clip: string) =>
    `Norm of the gradient of all weights: ${norm}; clipped to at most ${clip}.`,
  edits: "Edits are not part of a training step: it is computed for the model itself.",
  parts: { gradient: "Gradients", run: "Training run" },
  afterSteps: (steps: number) => (steps === 1 ? "After the step" : `After ${steps} steps`),
  take: "Take the step",
  takeMore: "Take another step",
  startOver: "Back to one step",
  partsTitle: "Parts of the lesson",
  stages: "Norm (length) of the gradient at each stage, read from right to left",
  block: (block: number) => `Block ${block}`,
  stage: (stage: string, token: string, norm: string) => `${stage} of “${token}”: gradient of norm ${norm}`,
  logitStage: (norm: string, n: number) =>
    `${norm}\nAt the logits, the gradient is p − y, divided by the ${n} predictions whose mean is the loss.`,
  token: "Token",
  loss: "Loss",
  target: "Next token",
  lossOf: (token: string, probability: string, loss: string) =>
    `“${token}” has a probability of ${probability}: −ln P = ${loss}`,
  noTarget: "no target",
  errors: (token: string) => `p − y at the logits after “${token}”`,
  errorsHint:
    "The target's probability should be 1 and all others 0. Gradient descent raises the logit of the target and lowers the others.",
  mean: (n: number) =>
    n === 1 ? "Gradient: $p - y$" : `Gradient: $(p - y) / ${n}$, because the loss is a mean of ${n}`,
  others: (count: string) => `${count} others`,
  isTarget: "target",
  gradientOf: (site: string) => `Gradient with respect to ${site}`,
  place: "Part of the model",
  site: "Site or weight",
  ends: "embedding and logits",
  weightName: (name: string) => `weight ${name}`,
  hover: "Click a number to see its gradient by the chain rule, and follow it down to a weight.",
  gradient: "Gradient",
  value: (value: string) => `The number itself is ${value}.`,
  unused: "No token of this text uses this number, so its gradient is 0.",
  onlyTargets: "Only the probability of the target enters the loss.",
  masked: "This score is masked: it has no effect, so its gradient is 0.",
  terms: "Gradient × derivative = term, largest first",
  sum: "Sum of all terms",
  inSteps: "Show how this number was computed",
  more: (n: number) => `… ${n} more`,
  update: "What the step does to this weight",
  chainRule: "Its gradient by the chain rule",
  why: ({ change, gradient, cause }: Direction, value: string, causeName: string) => {
    if (change === 0) return "It stays the same.";
    const way = change > 0 ? "up" : "down";
    if (gradient === -change)
      return `It goes ${way}: its gradient is ${gradient > 0 ? "positive" : "negative"} (${value}), so a ${change > 0 ? "larger" : "smaller"} value lowers the loss.`;
    const slope = gradient === 0 ? "0" : `${gradient > 0 ? "positive" : "negative"} (${value})`;
    return `It goes ${way} although its gradient is ${slope}${cause === null ? "." : `: the cause is “${causeName}”.`}`;
  },
  before: "old value",
  change: "change",
  after: "new value",
  against: "Parts of its gradient: a negative part pushes the weight up (↑), a positive one down (↓).",
  rate: (rate: string) => `learning rate ${rate}`,
  updateTerms: {
    gradient: "plain gradient descent",
    clipping: "clipping",
    momentum: "momentum",
    second_moment: "second moment",
    newton_schulz: "Newton–Schulz",
    rows: "row normalization",
    shape: "matrix shape",
    weight_decay: "weight decay",
    rounding: "rounding",
    frozen: "frozen",
    adapter_A: "adapter A",
    adapter_B: "adapter B",
    adapter_AB: "both adapters",
  } as Record<string, string>,
  updateHints: {
    gradient: "Plain gradient descent: minus the learning rate times the gradient.",
    clipping:
      "If the gradient of all weights together is longer than the limit, all of it is shrunk to that length.",
    momentum:
      "Replaces the gradient with a running mean over the steps. In the first step of AdamW, that is the gradient itself; Muon also looks one step ahead (Nesterov).",
    second_moment:
      "AdamW divides by the root of the running mean of the squared gradient, so that every weight moves about equally far. In the first step, every number moves by about the learning rate.",
    newton_schulz:
      "Muon replaces the matrix of directions with one whose singular values are all near 1. Each number then depends on the whole matrix, so it can even change its sign.",
    rows: "NorMuon divides each row by its running root mean square, so that all rows move about equally far.",
    shape: "If the matrix has more outputs than inputs, Muon multiplies by the square root of their ratio.",
    weight_decay:
      "Pulls the weight toward 0: the learning rate times the decay times the old value, whatever the loss.",
    rounding: "What is lost because the new value is stored as a float32 number.",
    frozen: "This weight is not trained.",
    adapter_A: "What the change of the adapter's matrix A contributes.",
    adapter_B: "What the change of the adapter's matrix B contributes.",
    adapter_AB: "What the changes of A and B contribute together.",
  } as Record<string, string>,
  byPosition: "Tokens that use it",
  byPositionHint: "What the use of the weight at each token adds to its gradient, largest first.",
  byTarget: "Predictions that move it",
  byTargetHint: "What the loss of each prediction adds to the gradient of the weight, largest first.",
  prediction: (token: string, target: string) => `${token} → ${target}`,
  takeHint: "Applies the update to a copy of the model and compares it with the model before.",
  taking: "Training…",
  other: "Another text",
  otherHint: "a text that the step was not computed on",
  thisText: "This text",
  otherText: "Other text",
  lossChange: (before: string, after: string) => `${before} → ${after}`,
  stepNumber: (step: number) => `Step ${step}`,
  changedWeights: "Weights that lower the loss most",
  expected: (expected: string, actual: string) =>
    `Gradient × change, summed over the numbers of a weight: its part of the expected change of the loss. All weights: ${expected}; the loss really changed by ${actual}.`,
  moved: "Probabilities that change most",
  movedAfter: (token: string) => `after “${token}”`,
  run: {
    title: (run: string) => `Training run ${run}`,
    slider: "Training time",
    between: (from: string, to: string) => `between steps ${from} and ${to}`,
    head: (block: number, head: number) => `How far the weights of head ${block}.${head} moved`,
    headHint: "The norm of the change between two snapshots, relative to the norm of the weight before.",
    weights: "Weight",
    texts: (step: string) => `The texts of step ${step} that move this head most`,
    textsHint:
      "The loss of each text of the batch, and the norm of what it adds to the gradient of the head's weights.",
    loss: "Loss",
  },
};
