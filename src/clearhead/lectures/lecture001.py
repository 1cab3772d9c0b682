"""Lecture 001: transformers by worked numbers."""

from __future__ import annotations

import math

from clearhead.lectures import numbers001 as numbers
from clearhead.lectures.counting import count_sentence
from clearhead.lectures.stop import Lecture, LectureStop
from clearhead.lectures.worked import embed
from clearhead.model.lectures import query_attention

LECTURE = Lecture(
    "001",
    "Transformers by worked numbers",
    (
        LectureStop(
            "001.1",
            "A language model gives a text a probability, token by token: P(w) = Π P(wi | w1 … wi-1). Models differ in "
            "what they know of the past. An n-gram model sees only the last n-1 tokens, an RNN packs all of them into "
            "one vector h, and a transformer looks back at each one. The counts come from “the chicken was tired”, "
            "“the road was wide” and “the chicken crossed the road”.",
            numbers.language_modeling,
            "The bigram model accepts “the chicken was wide”: at “was”, it has forgotten the chicken. Given the whole "
            "context, the probability is 0. The built-in model knows the whole context too, and also has an "
            "answer for contexts that it has never seen.",
            lambda: count_sentence(numbers.TEXT, "the road was tired", 2)[-1].product,
        ),
        LectureStop(
            "001.2",
            "A recurrent layer and a transformer layer have the same interface: (e1', e2', e3') = RNN(e1, e2, e3) or "
            "Transformer(e1, e2, e3). One vector goes in for each token, and one comes out that also depends on the "
            "tokens before it. The RNN passes a state along; attention mixes the vectors directly.",
            numbers.shared_interface,
            "“bats” goes in with the same vector in both sentences and comes out with different ones, from either "
            "network. The RNN here is h = tanh(e + h/2), and the attention is the simplest one, without matrices.",
            numbers.outputs_that_change,
        ),
        LectureStop(
            "001.3",
            "A sequence of digits ends in 1 if any digit was a 1, and in 0 otherwise. Let a 1 be followed by many "
            "zeros. An RNN passes the information from cell to cell, h = tanh(x w + h U + b); this one, with 4 units "
            "and seed 4, is trained for 100 steps on 5 to 20 digits. Attention looks straight at the 1 (keys are "
            "multiplied by 10, as at stop 5). Linear probes measure what is left: each predicts from a state, or from "
            "the output of attention, whether the first digit was a 1. Digits come with noise from -0.3 to 0.3.",
            numbers.running_example,
            "After a hundred zeros, a probe is right in {accuracy in the state after 100 zeros:.0%} of the sequences, "
            "where guessing would be right in half of them. In the output of attention, it is right in "
            "{accuracy in the output of attention:.0%}. Some networks carry the information to the end and others "
            "lose it, depending on the seed. `clearhead lab any-one` trains both kinds.",
            numbers.zeros_until_forgotten,
        ),
        LectureStop(
            "001.4",
            "The keys are the embeddings of the tokens, 0 = [1, 0] and 1 = [0, 1]; the query [0, 1] says what to find. "
            "A score is a dot product, si = ki · q; the softmax turns scores into weights αi, and the result is "
            "Σ αi ei. With 3 in place of e, you can compute this in your head.",
            numbers.keys_and_query,
            "In 0010, the 1 gets half the weight with base 3, so the result is [1/2, 1/2] and not the plain average "
            "[3/4, 1/4]. In 0000, there is no 1 to find, and the result is [1, 0].",
            lambda: query_attention(numbers.ONES * math.log(3), embed("0110"), embed("0110"))[1][1].item(),
        ),
        LectureStop(
            "001.5",
            "Every zero adds 1 to the denominator of the softmax, so the weight on a single 1 falls as the sequence "
            "grows: α = e^b / (e^b + n) with n zeros. Longer keys help: with ki = ei W^K and W^K = b·I, the score of "
            "the 1 is b instead of 1.",
            numbers.long_sequences,
            "With 100 zeros and plain keys, only {plain keys, 100 zeros:.1%} of the weight is on the 1. With keys "
            "times 10, it is {boosted keys, 100 zeros:.1%}, and {boosted keys, 3 zeros:.5f} with three zeros.",
            lambda: math.log(100),
        ),
        LectureStop(
            "001.6",
            "The plain score is k · q. “Linear” attention puts a matrix in between, k W q, and it does not matter "
            "whether W acts on the key or on the query. A transformer has a matrix for each: (k W^K) · (q W^Q) equals "
            "k W q with W = W^K (W^Q)ᵀ.",
            numbers.both_sides,
            "The key of a 1 and the query of a 0 have nothing in common: their dot product is 0. With the matrices, "
            "the score is {k W q:g}: the 0 now looks for a 1. All four ways of computing it agree.",
            numbers.exercise_score,
        ),
        LectureStop(
            "001.7",
            "Now every token is a key and a query at the same time. With the embeddings as rows of E: Q = E W^Q, "
            "K = E W^K, S = Q Kᵀ, and the softmax of each row of S gives A. Row i of A says how token i distributes "
            "its attention. Here W^Q has the rows [0, 1] and [0, 1], and W^K = 10·I.",
            numbers.self_attention,
            "Every row of Q is [0, 1]: all four tokens look for a 1, and all rows of A are alike, with "
            "{weight of every token on the 1:.5f} on the 1. (The lecture writes Q = E (W^Q)ᵀ, but its numbers follow "
            "from Q = E W^Q.)",
            numbers.digit_sought_by_zero,
        ),
        LectureStop(
            "001.8",
            "Two tokens suffice to go through the whole head. Each token's output is a mixture of embeddings, A E; the "
            "Transformer paper adds more parameters, V = E W^V and W^O, and divides the scores: "
            "softmax(Q Kᵀ / √d_k) V. Keys are multiplied by 10.",
            numbers.two_tokens,
            "If each digit looks for itself, A is almost the identity, with {weight of the 0 on itself:.5f} on the "
            "diagonal, and A E is almost E. If both look for a 1, both rows become [0.00005, 0.99995]: each token "
            "knows that there is a 1. With the scores divided by √2, the weights are a little less sharp. (The lecture "
            "writes W^K = I here, but computes with keys times 10.)",
            numbers.plain_weight_on_itself,
        ),
        LectureStop(
            "001.9",
            "Two details turn this into a language model. The mask keeps a token from attending to later ones, which "
            "it is supposed to predict. And because attention only computes a weighted sum, a token does not know "
            "the order of those before it unless a position is added to each embedding: xi = ei + [sin i, cos i] with "
            "i = 0, 1, 2, …, as in the paper. Here, q = x, k = 2x and v = x.",
            numbers.mask_and_position,
            "Without positions, swapping the first two tokens (0110 to 1010) does not change the output of "
            "the last one. With positions, it changes by {change with mask, positions:.2g}. Without the "
            "mask, the upper triangle fills: tokens see their own future.",
            numbers.order_is_seen,
        ),
    ),
)
