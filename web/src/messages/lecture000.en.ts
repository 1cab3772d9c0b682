/** Lecture 000 in English. */

import type { StopProse } from "./lectures.en";

export const STOPS_000: Record<string, StopProse> = {
  "000.1": {
    idea: "Word2vec and its relatives store one vector per word in a table, whatever the sentence: a static embedding. But what “it” means depends on the sentence. A transformer starts from such a table and then turns each token's vector into a contextual one, block by block.",
    notice:
      "“it” has one vector in the table (cosine 1) and two after the blocks. Click tired / wide: “it” is identical, because the adjective comes after it. Then choose the period: it differs.",
    notes:
      "Large language models are built out of transformers: networks based on attention. Ask what “it” means in a table: one vector for every use of the word. The lecture pictures attention at “it”; in a causal model, “it” cannot see the adjective, so the difference appears at the adjective and after it. In the first pair, part of the difference comes from the position of “it”, which differs between the sentences.",
  },
  "000.2": {
    idea: "Self-attention builds a token's contextual vector by integrating information from the tokens up to it, some more than others. The output is a weighted sum of vectors from the layer below: $a_i = \\sum_{j \\le i} \\alpha_{ij}\\, v_j$, and the weights $\\alpha_{ij}$ of a token, its attention distribution, add up to 1.",
    notice:
      "The thickness of a line is its weight. Choose other tokens: no line leads to a later one. Choose other heads: each selects in its own way.",
    notes:
      "This is the lecture's picture of two layers, with the attention weights of the loaded model. Leave with Esc, type another sentence at the top of the page, and let the class guess where a token will look. A weight says how much is taken from a token, not what is taken: the value determines that.",
  },
  "000.3": {
    idea: "No matrices yet. Similar vectors have a large dot product, so take it as the score: $\\text{score}(x_i, x_j) = x_i \\cdot x_j$. The softmax over all $j \\le i$ turns scores into weights $\\alpha_{ij}$, and the output is the weighted sum of the vectors themselves, $a_i = \\sum_{j \\le i} \\alpha_{ij}\\, x_j$.",
    notice:
      "The vector of “it” resembles that of “chicken”, which gets 0.67 of the weight. Change the first vector to [0, 0.5], and “it” attends to itself. The first token has no choice: its weight on itself is 1.",
    notes:
      "Work out one row on the board, then change a number and let the class predict in which direction the weights move. Switch to the model's embeddings: the same computation on longer vectors. Point out what is missing: a token always resembles itself, so it tends to attend to itself.",
  },
  "000.4": {
    idea: "A vector plays three roles. As a query, it is the current token, which looks for something; as a key, it is an earlier token, which is compared with the query; and as a value, it is what gets weighted and summed. Each role has its own matrix: $W^Q$, $W^K$ and $W^V$.",
    notice:
      "Without matrices, “it” looks for vectors like its own and finds “chicken”. Here, $W^Q$ turns it into a query for the second number, and “road” gets 0.94. $W^V$ decides what is taken from it: its two numbers, swapped.",
    notes:
      "Go through the formulas line by line and ask what changed: $x$ became $q$, $k$ or $v$, nothing else. With three identity matrices, the right side equals the left one; set them and see. A query need not resemble its own key: this is how a pronoun can look for nouns.",
  },
  "000.5": {
    idea: "A dot product of $d_k$ random terms has a standard deviation of $\\sqrt{d_k}$, so scores grow with the length of queries and keys. The softmax then puts almost all weight on one token, and its gradient vanishes: for a weight $\\alpha$ it is $\\alpha (1 - \\alpha)$. Dividing by $\\sqrt{d_k}$ undoes the growth.",
    notice:
      "Each of 60 random queries meets 8 keys. With $d_k = 64$, undivided scores have a standard deviation near 8, and the largest weight is mostly close to 1. With division, the standard deviation is near 1 at any $d_k$, and the gradient stays larger.",
    notes:
      "The argument is from the Transformer paper (Vaswani et al. 2017): components with mean 0 and variance 1 give dot products with variance $d_k$. Draw again a few times, so that the class sees what is due to chance. The division is a practical change for training; a trained model could have learned shorter keys.",
  },
  "000.6": {
    idea: "Everything a head does for the third token, in order: project each $x_j$ into query, key and value, compare $q_3$ with the keys of $x_1$, $x_2$ and $x_3$, divide by $\\sqrt{d_k}$, apply the softmax, weigh each value, sum, and pass on the output $a_3$, here through $W^O$.",
    notice:
      "Go through the seven steps from left to right: each adds one column or line, computed from those before it. The numbers are those of the model and of the text at the top of the page.",
    notes:
      "Reveal a step only after someone has said what comes next. Only tokens that are visible to the third one take part; choose the first token instead, and the softmax has nothing to decide. The full view shows where every number comes from.",
  },
  "000.7": {
    idea: "One head has one set of weights per token, so at each token it serves one purpose. Multi-head attention runs many heads side by side, each with its own $W^Q$, $W^K$ and $W^V$, and $W^O$ adds up what they found. Some learn a role: to attend to the previous token, a pronoun's noun, or what followed this token before.",
    notice:
      "Choose a role: the picture shows the head that plays it best in this model. The losses show how well the model predicts the text with this head and without it: choose induction, then “Use a story”, and compare the two.",
    notes:
      "The mean weight is measured on texts in which the correct target is known, and should be compared with that of uniform attention. An untrained or very small model has no clear roles. Removing a head that a text does not need changes little, which is why the story repeats a name and a noun.",
  },
  "000.8": {
    idea: "A block wraps attention in three more parts. Layer norm is the z-score of one vector, $\\hat{x} = (x - \\mu) / \\sigma$, then $\\gamma \\hat{x} + \\beta$. The feed-forward network adds a nonlinearity, $\\text{FFN}(x) = \\text{ReLU}(x W_1 + b_1) W_2 + b_2$. And each result is added to what was there before.",
    notice:
      "Follow $x$ through the six lines: two normalize, two compute, two add. Switch ReLU off: the feed-forward network becomes one matrix $W_1 W_2$, and two layers can do no more than one.",
    notes:
      "The head has identity matrices here, and both biases are zero, so that everything can be checked by hand. Multiply $x$ by 10: $\\hat{x}$ does not change, while $t^3$ does. Then show the same six lines in the model; a model with RMSNorm leaves out the mean.",
  },
  "000.9": {
    idea: "A transformer is a stack of such blocks. Each takes one vector of width $d$ per token and returns one of the same width, so the output of block 1 can be the input of block 2. The numbers change; the shape never does.",
    notice:
      "Read from bottom to top: the same width at every level. A block adds to its input: some change the vector a lot (a cosine well below 1), others only a little. Choose another token: it has its own column of vectors.",
    notes:
      "Ask why queries can be narrower but a block's output cannot: the output is added to the block's input. Libraries often count blocks from 0, as does this page. The link opens the logit lens, which reads a prediction off every level, and can do so only because all levels have the same width.",
  },
  "000.10": {
    idea: "A token's vector, block after block, is its residual stream. Norms and feed-forward networks use one stream; only attention reads from others: a head moves information from them into this one (Elhage et al. 2021). Two heads make an induction circuit: the first notes what came before each token; the second finds where the current token occurred before and copies what followed.",
    notice:
      "After A B C A, the circuit predicts B. Without the first head, the second has nothing to find and copies the same share of every token, the start included; without the second, nothing is copied, and all letters are equally likely.",
    notes:
      "Each stream has three parts here, and every part is written by one head or by the embedding: this is what makes the movement visible. The first head writes into one stream; the second, working on a later one, reads what the first wrote. Neither can do this alone. The link shows the heads of the model, sorted by their induction score.",
  },
};

export const FIGURES_000 = {
  head: "Head",
  token: "Token",
  sentence: (number: number) => `Sentence ${number}`,
  pairs: ["chicken / trumpet", "tired / wide"],
  sharedToken: "Token in both",
  nothingShared: "The two sentences have no token in common.",
  table: "table",
  afterBlock: (i: number) => `after block ${i}`,
  staticVector: "row of the embedding table",
  contextualVectors: "vectors after the last block",
  cosine: "cosine of the two vectors",
  firstNumbers: (shown: number, all: number, model: string) =>
    `The first ${Math.min(shown, all)} of ${all} numbers, in the model ${model}.`,
  layerAbove: "layer above",
  layerBelow: "layer below",
  lines: "Lines from the chosen token to those it attends to",
  notShown: (share: string) => `${share} of the weight is on tokens that are not shown.`,
  mostWeight: (from: string, to: string, share: string) =>
    `“${from}” puts the most weight on “${to}”: ${share}.`,
  ownText: (model: string) =>
    `The attention weights of the model ${model} on the text at the top of the page.`,
  vectors: "Vectors",
  sources: { hand: "By hand", model: "In the model" },
  forToken: "Token",
  x: "input",
  attention: "attention",
  threeEmbeddings: (d: number) =>
    `The embeddings of the first tokens of the text at the top of the page. Each has ${d} numbers.`,
  simplified: "Simplified",
  desimplified: "De-simplified",
  alphaOf: (side: string) => `weights, ${side}`,
  outputOf: (side: string) => `output, ${side}`,
  width: "Width $d_k$",
  widthAxis: "width of queries and keys",
  redraw: "Draw again",
  sharpness: "scores and weights",
  undivided: "undivided",
  dividedBy: "divided",
  deviation: "standard deviation",
  overQueries: (queries: number) => `over ${queries} queries`,
  largest: "mean largest weight",
  slope: "its mean gradient $\\alpha(1 - \\alpha)$",
  oneQuery: "weights of one query",
  steps: "Steps",
  stepNames: {
    project: "project",
    compare: "compare",
    divide: "divide",
    softmax: "softmax",
    weigh: "weigh",
    sum: "sum",
    write: "output",
  },
  stepTexts: {
    project: (i: number) => `Multiply every vector by $W^Q$, $W^K$ and $W^V$: $q_${i}$, $k_j$ and $v_j$.`,
    compare: (i: number) => `The dot product of $q_${i}$ with each key up to $k_${i}$.`,
    divide: () => "Divide each score by $\\sqrt{d_k}$.",
    softmax: () => "Turn the scores into weights that add up to 1.",
    weigh: (i: number) => `Multiply each value by its weight $\\alpha_{${i}j}$.`,
    sum: (i: number) => `Add up the weighted values: $a_${i}$.`,
    write: (i: number) => `$a_${i}$ is the output of the head; $W^O$ writes it into the stream of $x_${i}$.`,
  },
  thenChanged: (normalized: boolean, rotated: boolean) => {
    const changes = [normalized && "normalized", rotated && "rotated according to their positions"].filter(
      Boolean,
    );
    return changes.length > 0 ? `Queries and keys are then ${changes.join(" and ")}.` : "";
  },
  thenCapped: "This model then caps the quotients, so that none of them becomes large.",
  ofMany: (shown: number, all: number) => `The first ${shown} numbers of each vector; a query has ${all}.`,
  role: "Role",
  roleScore: "mean weight on the target",
  chance: "uniform attention",
  notInText: {
    previous: "",
    antecedent: "This text has no pronoun.",
    induction: "In this text, no word is repeated.",
  },
  lossWith: "loss on the text",
  lossWithout: "without this head",
  mostLost: (token: string, after: string, before: string, without: string) =>
    `The probability falls most at “${token}” after “${after}”: ${before} with this head, ${without} without it.`,
  nothingLost: "No token of this text becomes much less likely without this head.",
  useStory: "Use a story",
  scoredOffline: "The mean weight is measured on test texts. Removing a head requires a server.",
  gainAndShift: "gain and shift",
  lines6: "lines of the block",
  handBlock:
    "One head with identity matrices; $b_1 = b_2 = 0$; the same $\\gamma$ and $\\beta$ in both norms.",
  linear: "Without ReLU, $(t^4 W_1) W_2 = t^4 (W_1 W_2)$: a single matrix would do.",
  modelBlock: (block: number, shown: number, d: number) =>
    `Block ${block} of the model on the text at the top of the page: the first ${shown} of ${d} numbers.`,
  stack: "the stack",
  into: "into block 0",
  blockOrder: "from the bottom up",
  shape: "shape",
  numbersOf: "numbers",
  length: "length",
  cosineBelow: "cosine to row below",
  pooled: (least: number, most: number) =>
    `Each cell shows the largest of ${least === most ? most : `${least} or ${most}`} numbers.`,
  stackOf: (model: string, blocks: number, d: number, tokens: number) =>
    `${model}: ${blocks} blocks, all of width d = ${d}. With ${tokens} tokens, ${tokens} × ${d} numbers enter and leave each of them.`,
  someBlocks: (most: number) => `Only ${most} of the blocks are shown.`,
  letters: "Letters",
  onlyLetters: (most: number) => `Enter 1 to ${most} of the letters A, B, C and D.`,
  previousHead: "previous-token head",
  inductionHead: "induction head",
  start: "start",
  own: "own letter",
  before: "letter before",
  copied: "letter that followed",
  lastWeights: "induction head, last token",
  prediction: "prediction",
};
