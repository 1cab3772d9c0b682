"""Lecture 000: from static to contextual embeddings, and the transformer block."""

from __future__ import annotations

from clearhead.lectures import blocks000 as blocks
from clearhead.lectures import numbers000 as numbers
from clearhead.lectures.stop import Lecture, LectureStop

LECTURE = Lecture(
    "000",
    "From static to contextual embeddings, and the transformer block",
    (
        LectureStop(
            "000.1",
            "A static table has one vector per word, whatever the sentence. A transformer starts from such a table, "
            "and then each block lets a token take in the tokens before it. Compare a token's vectors in “The chicken "
            "didn't cross the road because it was too tired.” with those in “The trumpet didn't fit in the bucket "
            "because it was too big.”, and with those in a sentence that differs in one word: “… too wide.”.",
            numbers.static_and_contextual,
            "In the table, every cosine is 1: one vector. If the words before “it” differ, its two vectors end up "
            "with a cosine of {cosine of “it” after different words:.2f}. But “tired” and “wide” come after “it”: "
            "in a causal model, they change only the tokens that follow them.",
            numbers.where_last_word_shows,
        ),
        LectureStop(
            "000.2",
            "Self-attention gives each token a weighted sum of its own value and the values before it, ai = Σ αij "
            "vj. The weights of a token are positive and sum to 1; large ones show which tokens count. This "
            "head of the built-in model connects pronouns with what they stand for: “Ella lived near the "
            "village. She had a trumpet, and it …”",
            numbers.selective_integration,
            "“it” puts {weight on the trumpet:.0%} of its attention on “trumpet”. Nothing was lost on the way: the sum "
            "of weight times value is what the head computes, up to rounding.",
            numbers.weighted_sum,
        ),
        LectureStop(
            "000.3",
            "No matrices at all: score(xi, xj) = xi · xj, softmax over j ≤ i, ai = Σ αij xj. Below are "
            "hand-chosen vectors, “chicken” = [2, 0.5], “road” = [-0.5, 1.5] and “it” = [1.5, 0], and then the model's "
            "embeddings of “Ella lived near”.",
            numbers.simplest,
            "The vector of “it” resembles that of “chicken”, which gets {weight of “it” on “chicken”:.2f} of the "
            "weight. The first token has no choice: its weight on itself is 1. With the long embeddings of a real "
            "model, each token attends only to itself, and nothing is mixed: a reason for what follows, matrices and "
            "the division by √d_k.",
            numbers.simplest_weight,
        ),
        LectureStop(
            "000.4",
            "Each vector plays three roles, and a matrix for each makes them different: qi = xi W^Q looks for "
            "something, kj = xj W^K is what it is compared with, and vj = xj W^V is what is passed on. The vectors are "
            "those of stop 3. W^Q has the rows [0, 2] and [0, 1], W^K [1, 0] and [0, 1], and W^V [0, 1] and [1, 0].",
            numbers.three_roles,
            "Without matrices, “it” looks for vectors like its own and finds “chicken” "
            "({simplified weight of “it” on “chicken”:.2f}). Here W^Q turns it into a query for the second number, and "
            "“road” gets {weight of “it” on “road”:.2f}. W^V decides what is taken from it: its two numbers, swapped. "
            "Scores are no longer symmetric: 1 with 2 is {score of 1 with 2:g}, and 2 with 1 is {score of 2 with 1:g}.",
            numbers.weight_without_query,
        ),
        LectureStop(
            "000.5",
            "A dot product of d random numbers is a sum of d products, so its spread grows like √d. Large scores "
            "saturate the softmax: one weight approaches 1, the others 0, and the slope w (1 - w) through which "
            "gradients pass approaches 0. Divided by √d_k, scores keep the same spread at every width. Here, 60 random "
            "queries meet 8 keys each.",
            numbers.why_divide,
            "With d_k = 64, undivided scores have a standard deviation of {standard deviation, undivided:.2f}, and the "
            "largest weight is {largest weight, undivided:.2f} on average. Divided, they have one of "
            "{standard deviation, divided:.2f}, and the largest weight is {largest weight, divided:.2f}.",
            numbers.spread_ratio,
        ),
        LectureStop(
            "000.6",
            "Everything a head does for the third token: project each xj into query, key and value, compare q3 with "
            "the keys of x1, x2 and x3, divide by √d_k, take the softmax, weigh each value, sum, and pass on the "
            "output through W^O. The head and the text are those of stop 2, and d_k is 32.",
            numbers.steps_for_x3,
            "Each column follows from the ones before it. a3 is the sum of the weighted values and depends on x1 and "
            "x2 only through their keys and values. “near” puts {weight of “near” on “Ella”:.0%} of its attention on "
            "“Ella”: all scores are negative, and the softmax looks only at their differences.",
            numbers.third_weight,
        ),
        LectureStop(
            "000.7",
            "A single head has only one set of attention weights per token. With several side by side, each "
            "can follow a different relationship: the previous token, the noun that a pronoun refers to, or "
            "the token that followed the previous occurrence of the current one (induction). The table names "
            "the clearest head for each role in the built-in model, with its mean weight on the right token and that "
            "of uniform attention. It also gives the loss with and without the head: on the text of stop 2, continued "
            "with “was”, and on a story that repeats words: “… it was green. One afternoon, Ella lost her trumpet.”",
            blocks.many_heads,
            "Each role has a head that puts far more weight on the right token than uniform attention would. A head "
            "is needed only where its relationship occurs: without the induction head, the loss on the story goes from "
            "{loss on the story:.2f} to {without the induction head:.2f}. One head can serve two relationships: here, "
            "the best one for antecedents is also the induction head.",
            blocks.width_of_a_head,
        ),
        LectureStop(
            "000.8",
            "Layer norm is the z-score of one vector: subtract its mean μ and divide by its standard deviation σ (with "
            "1/d), then scale by γ and shift by β. The feed-forward layer needs ReLU: without it, two matrices "
            "amount to one. The block: t1 = LN(x), t2 = MHA(t1), t3 = t2 + x, t4 = LN(t3), t5 = FFN(t4), h = t5 + t3. "
            "Its lines are computed first for the second of two small vectors, x1 = [1, 0, 2] and x2 = [3, 1, -1], "
            "with one head that has identity matrices, γ = 1, β = 0 and no biases. W1 has the rows [1, -1, 0], "
            "[0, 1, -1] and [-1, 0, 1]; W2 is the identity. They are then computed in the built-in model, on the text "
            "of stop 2.",
            blocks.the_block,
            "Two lines normalize, two compute, and two add: the outputs of attention and feed-forward are added to x "
            "and never replace it. ReLU sets the negative numbers of t4 W1 to 0. Without it, t5 is t4 times one "
            "matrix, W1 W2, and two layers can do no more than one.",
            blocks.third_z_score,
        ),
        LectureStop(
            "000.9",
            "Every block takes one vector of width d per token and returns one of width d, so blocks can be stacked. "
            "The table follows the vector of “it” through the built-in model, on the text of stop 2. Because all "
            "vectors have the same width, each can also be read as if it came from the last block: the token that the "
            "model would predict there (the logit lens).",
            blocks.the_stack,
            "The shape is the same everywhere. Each block adds to its input: some change the vector a lot, others only "
            "a little. The early blocks still hold the token itself; the prediction appears toward the end.",
            blocks.numbers_after_block,
        ),
        LectureStop(
            "000.10",
            "Each token has one residual stream of width d, and every part of a block adds to it. Norms and "
            "feed-forward layers work on one stream at a time; only attention heads move information from one to "
            "another. Two of them can form a circuit (Elhage et al. 2021): a previous-token head tells each token what "
            "precedes it, and an induction head then finds where the current token occurred before and copies what "
            "followed. Here, a stream has three parts: the token's own letter, the letter before it, written by the "
            "first head, and the letter that followed, written by the second.",
            blocks.residual_stream,
            "After A B C A, the circuit predicts B. Without the first head, the second has nothing to find and attends "
            "to all tokens equally, though nothing in it was changed; without the second, nothing is copied, and all "
            "letters are equally likely. The same holds in the built-in model, where the loss without these heads "
            "exceeds that of uniform guessing, {loss of uniform guessing:.2f}.",
            blocks.streams_that_change,
        ),
    ),
)
