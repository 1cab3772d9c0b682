"""Lecture 001: transformers by worked numbers."""

from __future__ import annotations

import math

from clearhead.lectures import numbers001 as numbers
from clearhead.lectures.counting import count_sentence
from clearhead.lectures.stop import Lecture, LectureStop, Question
from clearhead.lectures.worked import embed
from clearhead.model.lectures import query_attention

LECTURE = Lecture(
    "001",
    "Transformers by worked numbers",
    (
        LectureStop(
            "001.1",
            "Language modeling",
            "A language model gives a text a probability, token by token: P(w) = Π P(wi | w1 … wi-1). Models differ in "
            "how they know the past. An n-gram sees only the last n-1 tokens, an RNN packs all of them into one vector "
            "h, and a transformer looks back at each one.",
            numbers.language_modeling,
            "The bigram accepts “the chicken was wide”: at “was” it has forgotten the chicken. Given the whole past, "
            "the probability is 0. The built-in model knows the whole past too, and also has an answer for pasts that "
            "it has never seen.",
            Question(
                "Count by hand: which probability does the bigram give “the road was tired”? The text is: "
                "“the chicken was tired”, “the road was wide”, “the chicken crossed the road”.",
                lambda: count_sentence(numbers.TEXT, "the road was tired", 2)[-1].product,
                "For each token, divide how often it follows the token before it by how often anything does. The "
                "first token follows the start of a sentence.",
                "All three sentences start with “the”: 1. “the” is followed by “road” twice out of four times: 1/2. "
                "“road” is followed once, by “was”: 1. “was” is followed by “tired” once out of twice: 1/2. The "
                "product is {answer}.",
                tolerance=0.0005,
            ),
        ),
        LectureStop(
            "001.2",
            "One interface, two networks",
            "A recurrent layer and a transformer layer have the same interface: (e1', e2', e3') = RNN(e1, e2, e3) or "
            "Transformer(e1, e2, e3). One vector goes in for each token, and one comes out that also depends on the "
            "tokens before it. The RNN passes a state along; attention mixes the vectors directly.",
            numbers.shared_interface,
            "“bats” goes in with the same vector in both sentences and comes out with different ones, from either "
            "network. The RNN here is h = tanh(e + h/2), the attention the simplest one, without matrices.",
            Question(
                "In “I swing bats”, you change only e2. Which outputs change, in either network?",
                numbers.outputs_that_change,
                "Each output is computed from its own vector and the ones before it.",
                "{answer} change. e1' was computed from e1 alone; no later token can reach it.",
                options=("only e2'", "e2' and e3'", "all three"),
            ),
        ),
        LectureStop(
            "001.3",
            "The running example",
            "A sequence of digits ends in 1 if any digit was a 1, and in 0 otherwise. Let a 1 be followed by many "
            "zeros. An RNN hands the news from cell to cell; in this one, each cell keeps a share of its state, "
            "h = 0.9 h + x. Attention looks straight at the 1 (keys are multiplied by 10, as at stop 5).",
            numbers.running_example,
            "After a hundred zeros, {state after 100 zeros:.2g} of the 1 is left in the state, while attention still "
            "gives it {attention weight after 100 zeros:.1%}. A share of 1 would not fade, but training has to find "
            "it, and its gradient fades on the way back like the state. `clearhead lab any-one` trains both.",
            Question(
                "With a share of 0.9, after how many zeros is the state below 0.01 for the first time?",
                numbers.zeros_until_forgotten,
                "The state after n zeros is 0.9 to the power of n. Use logarithms.",
                "0.9^n < 0.01 holds if n > ln 0.01 / ln 0.9 ≈ 43.7, so for the first time after {answer} zeros.",
            ),
        ),
        LectureStop(
            "001.4",
            "Keys and a query",
            "The keys are the embeddings of the tokens, 0 = [1, 0] and 1 = [0, 1]; the query [0, 1] says what to find. "
            "A score is a dot product, si = ki · q; the softmax turns scores into weights αi, and the result is "
            "Σ αi ei. With 3 in place of e, you can do it in your head.",
            numbers.keys_and_query,
            "In 0010, the 1 gets half the weight with base 3, so the result is [1/2, 1/2] and not the plain average "
            "[3/4, 1/4]. In 0000 there is no 1 to find, and the result is [1, 0].",
            Question(
                "Take the sequence 0110, the query [0, 1] and base 3. Which weight does each 1 get?",
                lambda: query_attention(numbers.ONES * math.log(3), embed("0110"), embed("0110"))[1][
                    1
                ].item(),
                "A 0 counts 3^0 = 1, a 1 counts 3^1 = 3. Divide by the sum over all four tokens.",
                "Each 1 counts 3, each 0 counts 1, and the sum is 8: 3/8, or {answer}.",
                tolerance=0.002,
            ),
        ),
        LectureStop(
            "001.5",
            "Long sequences flatten attention",
            "Every zero adds 1 to the denominator of the softmax, so the weight on a single 1 falls as the sequence "
            "grows: α = e^b / (e^b + n) with n zeros. Longer keys help: with k = e W^K and W^K = b·I, the score of the "
            "1 is b and no longer 1.",
            numbers.long_sequences,
            "With 100 zeros and plain keys, only {plain keys, 100 zeros:.1%} of the weight is on the 1. With keys "
            "times 10 it is {boosted keys, 100 zeros:.1%}, and {boosted keys, 3 zeros:.5f} with three zeros.",
            Question(
                "At which boost does the 1 get exactly half of the weight if there are 100 zeros?",
                lambda: math.log(100),
                "The 1 must count as much as all zeros together: e^b = 100.",
                "e^b = 100, so b = ln 100 ≈ {answer}.",
                tolerance=0.06,
            ),
        ),
        LectureStop(
            "001.6",
            "Dot product and linear attention",
            "The plain score is k · q. “Linear” attention puts a matrix in between, k W q, and it does not matter "
            "whether W acts on the key or on the query. A transformer has both: (k W^K) · (q W^Q), which is the same "
            "as W = W^K (W^Q)ᵀ.",
            numbers.both_sides,
            "The key of a 1 and the query of a 0 have nothing in common: their dot product is 0. With the matrices the "
            "score is {k W q:g}: the 0 now looks for a 1. All four ways of computing it agree.",
            Question(
                "Let k = [0, 1], q = [1, 0], and let W have the rows [1, 2] and [3, 4]. What is k W q?",
                numbers.exercise_score,
                "k W picks a row of W; the dot product with q then picks one of its numbers.",
                "k W is the second row, [3, 4], and its dot product with q = [1, 0] is {answer}.",
                tolerance=0.01,
            ),
        ),
        LectureStop(
            "001.7",
            "Self-attention",
            "Now every token is a key and a query at the same time. With the embeddings as rows of E: Q = E W^Q, "
            "K = E W^K, S = Q Kᵀ, and the softmax of each row of S gives A. Row i of A says how token i distributes "
            "its attention. Here W^Q has the rows [0, 1] and [0, 1], and W^K = 10·I.",
            numbers.self_attention,
            "Every row of Q is [0, 1]: all four tokens look for a 1, and all rows of A are alike, with "
            "{weight of every token on the 1:.5f} on the 1. (The lecture writes Q = E (W^Q)ᵀ, but its numbers follow "
            "from Q = E W^Q.)",
            Question(
                "Let W^Q have the rows [0, 1] and [1, 0]. What does a 0 look for?",
                numbers.digit_sought_by_zero,
                "The query of a 0 is [1, 0] W^Q, the first row of W^Q.",
                "The first row of W^Q is the query of a 0: [0, 1], which matches the keys of 1s. So it looks for "
                "{answer}; likewise, 1s look for 0s.",
                options=("0s", "1s", "both alike"),
            ),
        ),
        LectureStop(
            "001.8",
            "The sequence 0 1, all the way",
            "Two tokens suffice to go through the whole head. Each token's output is a mixture of embeddings, A E; the "
            "Transformer paper adds more parameters, V = E W^V and W^O, and divides the scores: "
            "softmax(Q Kᵀ / √d_k) V. Keys are boosted by 10.",
            numbers.two_tokens,
            "If each digit looks for itself, A is almost the identity, with {weight of the 0 on itself:.5f} on the "
            "diagonal, and A E is almost E. If both look for a 1, both rows become [0.00005, 0.99995]: either token "
            "knows that there is a 1. With the scores divided by √2, the weights are a little less sharp.",
            Question(
                "Each digit looks for itself, but with plain keys, W^K = I. Which weight does the 0 put on itself?",
                numbers.plain_weight_on_itself,
                "The scores of the 0 are 1 and 0, so the weight is e / (e + 1).",
                "e^1 / (e^1 + e^0) = e / (e + 1) ≈ {answer}.",
                tolerance=0.006,
            ),
        ),
        LectureStop(
            "001.9",
            "Masking and position encoding",
            "Two details make a language model of this. The mask keeps a token from attending to later ones, which it "
            "is supposed to predict. And because attention only sums over the tokens before, it does not know their "
            "order unless a position is added to each embedding, here [sin i, cos i] as in the paper.",
            numbers.mask_and_position,
            "Without positions, swapping the first two tokens, 0110 and 1010, does not change the output of the last "
            "one. With positions it changes by {change with mask, positions:.2g}. Without the mask, the upper triangle "
            "fills: tokens see their own future.",
            Question(
                "With the mask and without positions: does the last token of 0010 get the same output as the last "
                "token of 1000?",
                numbers.order_is_seen,
                "The last token sees all four tokens. Does the sum depend on where the 1 stands?",
                "It is {answer}: both sequences hold three 0s and a 1, and a weighted sum does not depend on the "
                "order of its terms.",
                options=("the same output", "a different output"),
            ),
        ),
    ),
)
