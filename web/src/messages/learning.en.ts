/** The texts of the learning view in English. */

import type { Direction, UpdateNumbers } from "../model/update";

export const learning = {
  summary: (loss: string, targets: number) =>
    `Loss ${loss}, the mean of $-\\ln P$ over ${targets} ${targets === 1 ? "prediction" : "predictions"}`,
  optimizers: { muon: "Muon", adamw: "AdamW" } as Record<string, string>,
  recipe: (optimizer: string, rate: string) => `${optimizer}, peak learning rate ${rate}`,
  recipeHint:
    "The step is the first of a new training run with the model's recipe, at the highest learning rate of its schedule, even if the rate was lower when the model was saved.",
  cut: (used: string, all: string) =>
    `Only the last ${used} of ${all} tokens are used: the context holds no more.`,
  numberOf: (taken: number) => `of ${taken}`,
  shownStep: "Step shown",
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
    `${norm}\nAt the logits, the gradient is p − y, divided by ${n}, the number of predictions that the loss averages over.`,
  token: "Token",
  loss: "Loss",
  target: "Next token",
  lossOf: (token: string, probability: string, loss: string) =>
    `“${token}” has a probability of ${probability}: −ln P = ${loss}`,
  noTarget: "no target",
  errors: (token: string) => `p − y at the logits after “${token}”`,
  errorsHint:
    "The target's probability should be 1 and all others 0. Gradient descent raises the logit of the target and lowers the others.",
  pushesLogits: "Bars to the right raise the logit (↑), bars to the left lower it (↓).",
  mean: (n: number) =>
    n === 1 ? "Gradient: $p - y$" : `Gradient: $(p - y) / ${n}$, because the loss is a mean of ${n}`,
  others: (count: string) => `${count} others`,
  isTarget: "target",
  gradientOf: (site: string) => `Gradient with respect to ${site}`,
  place: "Part of the model",
  site: "Site or weight",
  ends: "embedding and logits",
  weightName: (name: string) => `weight ${name}`,
  start: [
    "Each token's loss is $-\\ln P$ of the token that actually comes next.",
    "A gradient tells you how the loss changes when a number increases slightly: if it is positive, the loss rises; if it is negative, the loss falls. Gradient descent therefore moves every weight against its gradient. Optimizers start from this direction and modify it, so individual weights may also go the other way.",
    "At the logits, the gradient is $p - y$. From there, it is propagated backward, from right to left: the gradient of a number is the sum, over all numbers computed from it, of their gradients, each times a derivative.",
    "Click a number to see this sum, and follow it down to a weight, or choose a weight in the list. There you see which way it goes, why, and which tokens push it.",
  ],
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
  why: ({ change, gradient, decay, cause }: Direction, value: string, causeName: string) => {
    const slope = gradient === 0 ? "0" : `${gradient > 0 ? "positive" : "negative"} (${value})`;
    if (cause === null || change === 0) return `It stays the same. Its gradient is ${slope}.`;
    const goes = `It goes ${change > 0 ? "up" : "down"}`;
    if (cause === "gradient") {
      const pull = decay === 0 ? "" : ` Weight decay ${decay === change ? "agrees" : "resists"}.`;
      return `${goes} because its gradient is ${slope}: a ${change > 0 ? "larger" : "smaller"} value lowers the loss.${pull}`;
    }
    if (cause === "weight_decay")
      return `${goes} because weight decay pulls it toward 0, more strongly than anything else moves it. Its gradient is ${slope}.`;
    if (cause === "rounding") return `${goes}, but only because of rounding. Its gradient is ${slope}.`;
    if (cause.startsWith("adapter")) return `${goes} because its adapters change. Its gradient is ${slope}.`;
    const reasons: Record<string, string> = {
      momentum: "the gradients of earlier steps, which momentum remembers, outweigh it",
      newton_schulz: "Newton–Schulz, which depends on the whole matrix, reverses the direction",
    };
    const relation =
      gradient === -change ? `, as its gradient (${value}) requires` : ` although its gradient is ${slope}`;
    return `${goes}${relation}: ${reasons[cause] ?? `the deciding term is “${causeName}”`}.`;
  },
  before: "old value",
  change: "change",
  after: "new value",
  pushes:
    "Bars to the right push the weight up (↑), bars to the left down (↓). A positive gradient pushes it down, a negative one up.",
  otherParts: (n: number) => (n === 1 ? "1 other" : `${n} others`),
  partsSum: "the gradient: the sum of all parts",
  rate: (rate: string) => `peak learning rate ${rate}`,
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
    gradient: () => "Plain gradient descent: minus the learning rate times the gradient.",
    clipping: () =>
      "If the gradient of all weights together is longer than the limit, it is scaled down to that length.",
    momentum: () =>
      "Replaces the gradient with a running mean over the steps. In the first step of AdamW, that is the gradient itself; Muon also looks one step ahead (Nesterov).",
    second_moment: ({ epsilon }) =>
      `AdamW divides by the root of the running mean of the squared gradient, plus ε = ${epsilon}, so that every weight moves about equally far. In the first step, a number moves by about the learning rate, but by less if its clipped gradient is not much larger than ε.`,
    newton_schulz: () =>
      "Muon replaces the matrix of directions with one whose singular values are all near 1. Each number then depends on the whole matrix, so it can even change its sign.",
    rows: () =>
      "NorMuon divides each row by its running root mean square, so that all rows move about equally far.",
    shape: () =>
      "If the matrix has more outputs than inputs, Muon multiplies by the square root of their ratio.",
    weight_decay: ({ rate, decay, before }) =>
      `Pulls the weight toward 0, whatever the loss: minus the learning rate (${rate}) times the decay (${decay}) times the old value (${before}).`,
    rounding: () => "What is lost because the new value is stored as a float32 number.",
    frozen: () => "This weight is not trained.",
    adapter_A: () => "What the change in the adapter's matrix A contributes.",
    adapter_B: () => "What the change in the adapter's matrix B contributes.",
    adapter_AB: () => "What the changes in A and B contribute together.",
  } as Record<string, (numbers: UpdateNumbers) => string>,
  byPosition: "Tokens that use it",
  byPositionHint: "What the use of the weight at each token adds to its gradient, largest first.",
  byTarget: "Predictions that move it",
  byTargetHint: "What the loss of each prediction adds to the gradient of the weight, largest first.",
  prediction: (token: string, target: string) => `${token} → ${target}`,
  takeHint: "Applies the update to a copy of the model and compares it with the original.",
  taking: "Training…",
  other: "Another text",
  otherHint: "a text that the step was not computed on",
  thisText: "This text",
  otherText: "Other text",
  lossChange: (before: string, after: string) => `${before} → ${after}`,
  stepNumber: (step: number) => `Step ${step}`,
  changedWeights: "Weights that lower the loss most",
  expected: (expected: string, actual: string) =>
    `Gradient × change, summed over the numbers of a weight: its part of the expected change in the loss. All weights: ${expected}; the loss actually changed by ${actual}.`,
  moved: "Probabilities that change most",
  movedAfter: (token: string) => `after “${token}”`,
  run: {
    title: (run: string) => `Training run ${run}`,
    slider: "Training time",
    between: (from: string, to: string) => `between steps ${from} and ${to}`,
    head: (block: number, head: number) => `How far the weights of head ${block}.${head} moved`,
    headHint:
      "The norm of the change between two snapshots, relative to the norm of the weight at the first.",
    weights: "Weight",
    texts: (step: string) => `The texts of step ${step} that move this head most`,
    openText: "Show a training step on this text",
    textsHint:
      "The loss of each text of the batch, and the norm of what it adds to the gradient of the head's weights.",
    loss: "Loss",
  },
};
