/** Lecture 001 in English. */

import type { StopProse } from "./lectures.en";

export const STOPS_001: Record<string, StopProse> = {
  "001.1": {
    idea: "A language model gives a text a probability, token by token: $P(w) = \\prod_i P(w_i \\mid w_1, \\dots, w_{i-1})$. Models differ in what they know of the past. An n-gram model sees only the last $n-1$ tokens, an RNN packs all of them into one vector $h$, and a transformer looks back at each one.",
    notice:
      "The bigram accepts “the chicken was wide”: at “was”, it has forgotten the chicken. Given the whole context, the probability is 0.",
    notes:
      "Read the table from top to bottom and let the class predict each number. Then switch from the bigram to the whole context and ask what changed in the row of the last token. The whole context is counted here too; RNNs and transformers estimate it, so they also have an answer for contexts they have never seen.",
  },
  "001.2": {
    idea: "A recurrent layer and a transformer layer have the same interface: $(e_1', e_2', e_3') = \\text{RNN}(e_1, e_2, e_3)$ or $\\text{Transformer}(e_1, e_2, e_3)$. One vector goes in for each token, and one comes out that also depends on the tokens before it. The RNN passes a state along; attention mixes the vectors directly.",
    notice:
      "“bats” goes in with the same vector in both sentences and comes out with different ones. Change a number in the first vector: every output changes.",
    notes:
      "The equals sign in the lecture means the same inputs and outputs, not the same numbers. The attention here is the simplest one: dot products of the vectors themselves. Open Word vectors to see the two “bats” in a real model.",
  },
  "001.3": {
    idea: "A sequence of digits ends in 1 if any digit was a 1, and in 0 otherwise. Let a 1 be followed by many zeros. An RNN passes the information from cell to cell, $h_t = \\tanh(x_t w + h_{t-1} U + b)$; this one is trained here, on 5 to 20 digits. Attention looks straight at the 1.",
    notice:
      "Here the information fades from cell to cell, while attention still has it. With seed 7 and 200 steps, the network carries it to the end; with seed 2, it is lost within ten cells, just as without training (0 steps).",
    notes:
      "Be fair to RNNs: trained on short sequences, some carry the information through 200 zeros and others lose it, depending on the seed. Trained only on long ones, they hardly learn at all. With attention, the long case can be learned; the lab shows both.",
  },
  "001.4": {
    idea: "The keys are the embeddings of the tokens, $0 = [1, 0]$ and $1 = [0, 1]$; the query says what to find. A score is a dot product, $s_i = k_i \\cdot q$; the softmax turns scores into weights $\\alpha_i$, and the result is $\\sum_i \\alpha_i e_i$. With 3 in place of $e$, you can do it in your head.",
    notice:
      "In 0010, the 1 gets half the weight with base 3, so the result is [1/2, 1/2] and not the plain average [3/4, 1/4]. In 0000 there is no 1 to find, and the result is [1, 0].",
    notes:
      "Do base 3 on the board first, then switch to $e$: the weights become 0.17488 and 0.47537, and nothing else changes. Base 3 is the same as scores multiplied by $\\ln 3$, which is how the link sets up the tiny head. Let someone find a query that looks for zeros.",
  },
  "001.5": {
    idea: "Every zero adds 1 to the denominator of the softmax, so the weight on a single 1 falls as the sequence grows: $\\alpha = e^b / (e^b + n)$ with $n$ zeros. Longer keys help: with $k_i = e_i W^K$ and $W^K = b \\cdot I$, the score of the 1 is $b$ and no longer 1.",
    notice:
      "With 100 zeros and plain keys, only 2.6% of the weight is on the 1. Set the boost to 10: the weight is 99.5%, and 0.99986 with three zeros.",
    notes:
      "Start with plain keys and drag the zeros up to 1000 before touching the boost. The boost needed grows only with the logarithm of the length, which is why learned keys cope with long texts. Ask what a very large boost does to the gradient of the softmax.",
  },
  "001.6": {
    idea: "The plain score is $k \\cdot q$. “Linear” attention puts a matrix in between, $k W q$, and it does not matter whether $W$ acts on the key or on the query. A transformer has one matrix on each side: $(k W^K) \\cdot (q W^Q)$, which is the same as $k W q$ with $W = W^K (W^Q)^\\top$.",
    notice:
      "The key of a 1 and the query of a 0 have nothing in common, $k \\cdot q = 0$. With the matrices, the score is 10: the 0 now looks for a 1. All four ways of computing it agree.",
    notes:
      "If one matrix is enough, why two? $W$ has $d \\times d$ numbers, while $W^K$ and $W^Q$ can be narrow, $d \\times d_k$ each, and then $W$ has a low rank. Vectors are rows on this page, so matrices multiply them from the right; the lecture writes some of them as columns.",
  },
  "001.7": {
    idea: "Now every token is a key and a query at the same time. With the embeddings as rows of $E$: $Q = E W^Q$, $K = E W^K$, $S = Q K^\\top$, and the softmax of each row of $S$ gives $A$. Row $i$ of $A$ says how token $i$ distributes its attention.",
    notice:
      "With $W^Q$ as in the lecture, every row of $Q$ is $[0, 1]$: all four tokens look for a 1, and all rows of $A$ are alike. Change a row of $W^Q$, and one digit changes its mind. (The lecture writes $Q = E (W^Q)^\\top$, but its numbers follow from $Q = E W^Q$.)",
    notes:
      "Read $S$ as a table of dot products, one for each query and key. Point out that the first row of $W^Q$ is what a 0 asks for, and the second row what a 1 asks for.",
  },
  "001.8": {
    idea: "Two tokens suffice to go through the whole head. Each token's output is a mixture of embeddings, $A E$; the Transformer paper adds the parameters $W^V$ (with $V = E W^V$) and $W^O$, and divides the scores: $\\operatorname{softmax}(Q K^\\top / \\sqrt{d_k})\\, V$.",
    notice:
      "If each digit looks for itself, $A$ is almost the identity and $A E$ almost $E$. If both look for a 1, both rows become $[0.00005, 0.99995]$: each token knows that there is a 1. (The lecture writes $W^K = I$ here, but computes with keys multiplied by 10.)",
    notes:
      "The lecture writes $W^O A E$; with rows as vectors, the product is $A V W^O$. Switch the division on: the scores fall from 10 to 7.07, and the weights become a little less sharp.",
  },
  "001.9": {
    idea: "Two details turn this into a language model. The mask keeps a token from attending to later ones, which it is supposed to predict. And because attention only computes a weighted sum, a token does not know the order of those before it unless a position is added to each embedding: $x_i = e_i + [\\sin i, \\cos i]$ with $i = 0, 1, 2, \\dots$, as in the paper. Here, $q = x$, $k = 2x$ and $v = x$.",
    notice:
      "Without positions, swapping the first two tokens does not change the output of the last one. Add positions, and it does. Remove the mask, and the upper triangle fills: tokens see their own future.",
    notes:
      "A causal model without positions is not quite blind to order: the tokens in between see different contexts, and a second layer can use that. For one layer and the last token, the earlier tokens are a bag of words. Ask what would happen in training without the mask.",
  },
};
