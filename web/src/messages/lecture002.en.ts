/** Lecture 002 in English: the texts of its stops, and the labels of its figures. */

import type { Kind, Relationship } from "../model/relationshipHead";
import type { StopProse } from "./lectures.en";

export const STOPS_002: Record<string, StopProse> = {
  "002.1": {
    idea: "What determines the meaning of a word? That is a conceptual question, and the distributional hypothesis is an answer to it: words in similar surroundings have similar meanings, like cat and dog in “the … gets fed”. Why 300 neurons, not 200, not 500? That is an engineering question, and only a measurement answers it.",
    notice:
      "On the training sentences, wider is always at least as good. On new sentences, the loss falls steeply up to a width of 8 and then stays about the same or rises again. With fewer sentences or another seed, the best width may be another one.",
    notes:
      "Let the class guess before you train. The text is made by a small grammar, every model takes 100 steps on all of its pairs, and 200 sentences are held out, the same ones for every width. Then change the seed: the differences between 8, 16 and 32 are as small as the differences between seeds, so one run does not decide between them. The word2vec paper compares widths in the same way, on a far larger text.",
  },
  "002.2": {
    idea: "Features of a word used to be designed by people: is it an animal, is it alive? Skip-gram learns them. Every word and each of its neighbors in a window make a training pair, the vectors learn to predict the neighbor, and words with similar neighbors get similar vectors.",
    notice:
      "Drag the steps from 0 up: the vectors start at random, and training brings cat and dog together, though they never occur in the same sentence. Replace “dog” with “bus” in one sentence and see what changes.",
    notes:
      "The first row is (the, quick) and (the, brown), as in the lecture. The vectors have 8 numbers and are trained with a softmax over all words; word2vec replaces that sum with a few negative samples, because its vocabulary is large. Nobody told the model what an animal is: similar surroundings were enough. Real static vectors are under Word vectors.",
  },
  "002.3": {
    idea: "Given a sequence of words, which word is most likely to follow? Every earlier word may play a role, but not the same one, and a word is never influenced by words that come after it: language has a temporal dimension. Here the next word is counted from ten lines, and a number tells how much its probability would fall without a given word.",
    notice:
      "Click words of Damian's sentence away: without one of them, “her” turns into “him”. Each “his” pulls the other way. Read only part of the sentence, and the prediction changes as the deciding word arrives.",
    notes:
      "The model is naive Bayes: each word votes on its own, whatever its place. That is enough to see that words weigh differently, which is what attention will compute. It also shows what is missing: the votes are fixed and know nothing of one another. Open the sentence in Attribution to ask a trained transformer the same question.",
  },
  "002.4": {
    idea: "Predict the next word, append it, and continue. The model sees only the last words, as many as its context length: with 8, $w_1 \\dots w_8 \\to w_9$, then $w_2 \\dots w_9 \\to w_{10}$. The window slides, and past words predict future ones.",
    notice:
      "With a context of 8, the generated text follows the story. Shorten the context to 2 and generate 20 words: after “lazy dog” it can no longer tell where in the story it is, and it goes in circles.",
    notes:
      "The next word here is the most frequent one after the longest part of the window that occurs in the story. A transformer needs no exact match, but its window works the same way: what has left it has no direct influence. The lab generates through a window with a trained model.",
  },
  "002.5": {
    idea: "A word is a row of 32 numbers, its features. Eight words are a matrix $X$ with 8 rows and 32 columns. Looking up rows in the embedding table is a product as well: one-hot vectors times the table.",
    notice:
      "“The” at place 1 and “the” at place 7 have the same row in $X$: the table knows the word, not its place or its neighbors. Type other words; the head of the next three stops will use them.",
    notes:
      "The 32 numbers are random here, always the same ones for the same word, so that the shapes are those of the lecture and every number can be checked. In a trained model they are learned. Stops 5 to 8 are one example: what you change at one of them stays changed at the others until you reset it.",
  },
  "002.6": {
    idea: "Every word gets a query, what it looks for, and a key, what it offers: $Q = X W^Q$ and $K = X W^K$, both $8 \\times 32$. Then a single product, $S = Q K^\\top$, compares every query with every key: $S_{ij} = q_i \\cdot k_j$.",
    notice:
      "A cell takes one row of $Q$ and one column of $K^\\top$, multiplies them number by number, and sums up. 64 dot products of 32 terms each are one matrix product. $S$ is not symmetric: $q_2 \\cdot k_1$ is not $q_1 \\cdot k_2$.",
    notes:
      "Two slips in the lectures: a score is once written as a difference, $q_i - K_j$, but it is a dot product; and the first row of $\\text{Key}^\\top$ should read $k_1^{t1}, k_1^{t2}, \\dots, k_1^{t8}$: the subscript is the feature and stays the same along a row. $W^Q$ and $W^K$ are random here; training would choose them.",
  },
  "002.7": {
    idea: "A word must not be influenced by later words, so every score above the diagonal becomes $-\\infty$. The softmax then turns each row into weights: $e^{-\\infty} = 0$, so the future gets none, and each row sums to 1.",
    notice:
      "The first word can attend only to itself, so $P_{11} = 1$ whatever the scores are. Remove the mask, and every row spreads over all eight words. Divide by $\\sqrt{d_k}$, and the weights become more even.",
    notes:
      "Why $-\\infty$ and not 0? A score of 0 would still get a weight, since $e^0 = 1$. The lecture does not divide by $\\sqrt{d_k}$; the features here are small enough that the softmax is not saturated without it. Ask which row stays the same when the mask is removed, and why.",
  },
  "002.8": {
    idea: "The third projection is what a word passes on: $V = X W^V$. The output of the head is one more product, $A = P V$: row $i$ is the weighted sum of the values of the words up to $i$, for example $a_2 = P_{21} v_1 + P_{22} v_2$.",
    notice:
      "In the lecture, $V$ is $8 \\times 8$ while $Q$ and $K$ are $8 \\times 32$. Change $d_v$: $P$ does not change, and the output is as wide as the values. Only queries and keys must have the same width.",
    notes:
      "Start with row 1: $a_1 = v_1$, since the first word sees only itself. Then row 2, as in the lecture, and row 8, a mixture of all values. The zeros above the diagonal of $P$ are what keeps the future out of the sum. A full model then multiplies by $W^O$ and adds the result to the residual stream.",
  },
  "002.9": {
    idea: "The same head can be written as loops: for each word, for each word up to it, project, compare, weigh, sum. Or as five matrix products: three projections, $Q K^\\top$ and $P V$. The numbers are equal; the time is not.",
    notice:
      "Written naively, the loops compute the same keys and values again for every word that looks back. Let them keep these, and most of the gap in this browser closes: it computes one number after another. On a GPU, which computes thousands at once, the gap opens again.",
    notes:
      "The times are measured on your machine when you press the button, as the mean of many runs, and they vary. Be honest about the reasons: some of the gain is work saved, some is memory read in order; the rest, which a browser does not show, is that a GPU computes thousands of cells of a product at once. The lab measures it in PyTorch.",
  },
  "002.10": {
    idea: "What does a head represent? One relationship between words: who looks for whom. This head is designed by hand. The features of a word are its kind, $W^K$ is ten times the identity, and each row of $W^Q$ says what a kind of word looks for.",
    notice:
      "Choose “noun → adjective”: fox puts its weight on quick and brown. Another $W^Q$ is another relationship, on the same words. Words with no query of their own spread their weight evenly.",
    notes:
      "A trained model has many heads, and nobody designs them; some do represent a relationship that can be named, such as the previous word. Open All heads to search for them. Ask why “lazy” cannot find its noun: “dog” would come later, and the mask forbids it.",
  },
};

export const FIGURES_002 = {
  sentences: "Training sentences",
  seed: "Seed",
  trainAll: (count: number) => `Train ${count} models`,
  heldOut: "loss on new sentences",
  training: "loss on the training sentences",
  width: "width",
  losses: "Loss by width",
  best: (width: number) => `The loss on new sentences is lowest at width ${width}.`,
  untrained: "Which width will be best on new sentences? Guess, then train.",
  window: "Window",
  pairs: "Training pairs",
  center: "center",
  neighbors: "neighbors: one pair each",
  trainOn: "Sentences to train on",
  steps: "Steps",
  nearestTo: "Nearest to",
  catAndDog: "cosine of cat and dog",
  endings: "Lines; their last word is predicted",
  prompt: "What comes next?",
  read: "Read",
  leaveOut: "Words to leave out",
  nextWord: "next word",
  story: "Story to learn from; the first eight words are given",
  contextLength: "Context length",
  generated: "Words generated",
  generatedText: "Generated text",
  windows: "Windows",
  window8: "the model sees",
  follows: "follows",
  matched: "Gray words did not help: the story contains only the black ones in this order.",
  eight: (most: number) => `Enter 1 to ${most} words.`,
  word: "Word",
  features: "Features of the word",
  oneHot: "one-hot",
  table: "table",
  clickCell: "Click a cell of S, or move with the arrow keys.",
  keysTransposed: "K transposed",
  queries: "Q",
  query: "query",
  key: "key",
  products: "products",
  softmaxOf: "Softmax of the row",
  rowOf: (row: number, word: string) => `row ${row}: ${word}`,
  d_v: "Width $d_v$ of the values",
  weighted: "Weighted values",
  words: "Words",
  kept: "the loops keep keys and values",
  products5: "Five products",
  product: "product",
  shapes: "shapes",
  multiplications: "multiplications",
  byMatrices: "matrices",
  byLoops: "loops",
  difference: "Largest difference between the two results",
  measure: "Measure the time",
  ratio: "loops / matrices",
  relationship: "Relationship",
  relationships: {
    modifier: "noun → adjective",
    subject: "verb → noun",
    governor: "preposition → verb",
  } as Record<Relationship, string>,
  asksFor: "row looks for column",
  queryMatrix: "query matrix",
  kinds: {
    determiner: "det.",
    adjective: "adj.",
    noun: "noun",
    verb: "verb",
    preposition: "prep.",
  } as Record<Kind, string>,
  looksFor: (kind: string, sought: string) => `${kind} looks for ${sought}`,
  finds: (word: string, found: string) => `${word} attends to ${found}`,
  noQuery: "No kind of word looks for anything.",
  others: "All other words have the query 0 and attend evenly to the words up to them.",
};
