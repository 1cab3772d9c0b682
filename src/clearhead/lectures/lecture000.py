"""Lecture 000: from static to contextual embeddings, and the transformer block."""

from __future__ import annotations

from clearhead.lectures import numbers000 as numbers
from clearhead.lectures.stop import Lecture, LectureStop, Question

LECTURE = Lecture(
    "000",
    "From static to contextual embeddings, and the transformer block",
    (
        LectureStop(
            "000.1",
            "Static and contextual embeddings",
            "A static table has one vector per word, whatever the sentence. A transformer starts from such a table, "
            "and then each block lets a token take in the tokens before it. Compare a token's vectors in two "
            "sentences that differ in one word: “The chicken didn't cross the road because it was too tired” and "
            "“… too wide”.",
            numbers.static_and_contextual,
            "In the embedding, every cosine is 1: one vector. If the words before it differ, the two “it” end up at "
            "a cosine of {cosine of “it” after different words:.2f}. But “tired” and “wide” come after “it”: "
            "in a causal model, they change only the tokens that follow them.",
            Question(
                "In this causal model, does “it” have the same vector in both sentences about crossing the road?",
                numbers.it_is_seen_apart,
                "Which tokens can “it” attend to?",
                "{answer}: up to “it”, the two sentences are equal, and a causal model sees no further. The picture in "
                "which “it” attends to “chicken” or “road” depending on the adjective needs a model that looks both "
                "ways (`clearhead lab pronoun` trains one).",
                options=("Yes, the same", "No, different ones"),
            ),
        ),
        LectureStop(
            "000.2",
            "Attention as selective integration",
            "A head gives each token a weighted sum of the tokens up to it, ai = Σ αij vj. The weights of a row are "
            "positive and sum to 1; large ones say which tokens count. This head of the built-in model connects "
            "pronouns with what they stand for: “Ella lived near the village. She had a trumpet, and it …”",
            numbers.selective_integration,
            "“it” puts {weight on the trumpet:.0%} of its attention on “trumpet”. Nothing was lost on the way: the sum "
            "of weight times value is what the head computes, up to rounding.",
            Question(
                "Which share of the attention is left for all the other tokens together?",
                numbers.weight_elsewhere,
                "The weights sum to 1.",
                "1 minus the weight on “trumpet” is {answer}.",
                tolerance=0.005,
            ),
        ),
        LectureStop(
            "000.3",
            "The simplest attention",
            "No matrices at all: score(xi, xj) = xi · xj, softmax over j ≤ i, ai = Σ αij xj. By hand, with "
            "x1 = [1, 0], x2 = [0, 1], x3 = [1, 1]; and with the embeddings of “chicken”, “road” and “it” from the "
            "model.",
            numbers.simplest,
            "A vector is most similar to itself, so each token attends mostly to itself. With the long embeddings of a "
            "real model the weights are 0 and 1 up to rounding: nothing is mixed. Both are reasons for what follows, "
            "matrices and the division by √d_k.",
            Question(
                "Let x1 = [2, 0], x2 = [0, 1], x3 = [1, 0]. Which weight does x3 give to x1?",
                numbers.simplest_weight,
                "The scores of x3 are 2, 0 and 1. The weight is e^2 / (e^2 + e^0 + e^1).",
                "e^2 / (e^2 + 1 + e) ≈ {answer}. A longer vector can be a better match than the vector itself.",
                tolerance=0.005,
            ),
        ),
        LectureStop(
            "000.4",
            "Query, key and value",
            "Each vector plays three roles, and a matrix for each makes them different: qi = xi W^Q looks for "
            "something, kj = xj W^K is what it is compared with, vj = xj W^V is what is passed on. Here W^Q has the "
            "rows [1, 1] and [0, 1], W^K [1, 0] and [1, 1], W^V [2, 0] and [0, 1].",
            numbers.three_roles,
            "Without matrices the table of scores is symmetric. With them, x1 finds x2 "
            "({score of x1 with x2:g}) but x2 does not find x1 ({score of x2 with x1:g}): a pronoun can look for "
            "a noun without the noun looking for a pronoun.",
            Question(
                "Let x4 = [2, 1]. What is its score with x2, that is, q4 · k2?",
                numbers.score_with_roles,
                "q4 = [2, 1] W^Q is twice the first row of W^Q plus the second; k2 is the second row of W^K.",
                "q4 = [2, 3] and k2 = [1, 1], so q4 · k2 = 2 + 3 = {answer}.",
            ),
        ),
        LectureStop(
            "000.5",
            "Why scores are divided",
            "A dot product of d random numbers is a sum of d products, so its spread grows like √d. Large scores "
            "saturate the softmax: one weight approaches 1, the others 0, and the slope w (1 - w) through which "
            "training passes approaches 0. Divided by √d_k, scores keep the same spread at every width.",
            numbers.why_divide,
            "With 1024 numbers per vector and 16 keys, the largest weight is {largest weight, undivided:.2f} on "
            "average, and {largest weight, divided:.2f} if the scores are divided by √d_k.",
            Question(
                "From vectors of 4 numbers to vectors of 64, by which factor does the spread of the scores grow?",
                numbers.spread_ratio,
                "The spread grows like √d.",
                "√64 / √4 = 8 / 2 = {answer}. The measured spreads in the table come close to it.",
            ),
        ),
        LectureStop(
            "000.6",
            "The third token, step by step",
            "With the vectors and matrices of stop 4: project x3 into its query, compare it with the keys of x1, x2 "
            "and x3, divide by √2, take the softmax, weigh each value, and sum. Below it, the same steps in a head of "
            "the built-in model, where d_k is 32.",
            numbers.steps_for_x3,
            "Each column follows from the ones before it. a3 is the sum of the weighed values, and depends on x1 and "
            "x2 only through their keys and values. In the model, “was” attends to the token before it.",
            Question(
                "Without the division by √2: which weight would x3 give to itself?",
                numbers.undivided_weight,
                "The scores are 1, 3 and 4. Divide e^4 by e^1 + e^3 + e^4.",
                "e^4 / (e^1 + e^3 + e^4) ≈ {answer}, more than with the division: the weights are sharper.",
                tolerance=0.005,
            ),
        ),
        LectureStop(
            "000.7",
            "Many heads, many purposes",
            "One head has one way of looking. With several side by side, each can follow another relationship: the "
            "previous token, the noun that a pronoun stands for, or the token that came next the last time "
            "(induction). The table names the clearest head of each role in the built-in model, and the loss "
            "without it, on random tokens said twice and on stories.",
            numbers.many_heads,
            "Uniform attention would put 1 to 4% on these targets. Without either the previous-token head or the "
            "induction head, the loss rises sharply, and on stories it more than doubles. One head can serve two "
            "relationships: here, the best one for antecedents is the induction head too.",
            Question(
                "Without which head is the repetition predicted worse?",
                numbers.costlier_head,
                "Compare the losses on repeated tokens in the table.",
                "{answer}: it brings the answer itself. The previous-token head only prepares what it looks for.",
                options=("the previous-token head", "the induction head"),
            ),
        ),
        LectureStop(
            "000.8",
            "The transformer block",
            "Layer norm is the z-score of one vector: subtract its mean μ and divide by its standard deviation σ (with "
            "1/d), then scale by γ and shift by β. The feed-forward layer needs ReLU: without it, two matrices are "
            "only one. The block: t1 = LN(x), t2 = MHA(t1), t3 = t2 + x, t4 = LN(t3), t5 = FFN(t4), h = t5 + t3.",
            numbers.the_block,
            "Linear layers give 0 for every x here; with ReLU between them, the same two matrices compute |x|. In the "
            "model, t3 and h are sums: what attention and feed-forward compute is added, never put in place of x.",
            Question(
                "What is the z-score of the 5 in [1, 1, 1, 5]?",
                numbers.largest_z_score,
                "μ = 2. σ is the square root of the mean squared distance from μ, with 1/4 and not 1/3.",
                "σ = √((1 + 1 + 1 + 9) / 4) = √3, so the z-score is 3 / √3 = √3 ≈ {answer}.",
                tolerance=0.005,
            ),
        ),
        LectureStop(
            "000.9",
            "The stack",
            "Every block takes one vector of width d per token and returns one of width d, so blocks can be stacked. "
            "That also allows a look inside: read each block's output as if it were the last one, and see which "
            "token the model would predict there (the logit lens).",
            numbers.the_stack,
            "The shape is the same everywhere. The early blocks still hold the token itself; the prediction appears "
            "towards the end.",
            Question(
                "How many numbers pass from one block to the next for this text of 13 tokens?",
                numbers.numbers_between_blocks,
                "Multiply the number of tokens by the width.",
                "13 · 128 = {answer}.",
            ),
        ),
        LectureStop(
            "000.10",
            "The residual stream",
            "Each token has one stream of width d, and every part of a block adds to it. Norms and feed-forward layers "
            "work on one stream at a time; only attention heads move information from one to another. Two of them "
            "can form a circuit: a previous-token head tells each token what precedes it, and an induction head then "
            "finds the token that followed the current one earlier (Elhage et al. 2021).",
            numbers.residual_stream,
            "The logit of “was” is the sum of what all parts wrote. Set the first token's vector to 0, and the last "
            "token moves by {change at the last token:.1f}. Without the previous-token head, the "
            "induction head no longer finds its target, though nothing in it was changed.",
            Question(
                "With all heads ablated: how far does the last token move if the first token's vector is set to 0?",
                numbers.change_without_heads,
                "Which parts of a block take information from other tokens?",
                "By {answer}: only heads connect the streams.",
                tolerance=1e-6,
            ),
        ),
    ),
)
