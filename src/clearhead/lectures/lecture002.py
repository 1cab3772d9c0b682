"""Lecture 002: one attention head, by matrices."""

from __future__ import annotations

from clearhead.lectures import numbers002 as numbers
from clearhead.lectures.stop import Lecture, LectureStop

LECTURE = Lecture(
    "002",
    "One attention head, by matrices",
    (
        LectureStop(
            "002.1",
            "What determines the meaning of a word? That is a conceptual question, and the distributional hypothesis "
            "answers it: words in similar surroundings, such as cat and dog in “the cat gets fed” and “the dog gets "
            "fed”, have similar meanings. Why a hidden layer of 300 neurons, which gives 300 numbers per word, "
            "and not one of 200 or 500? That is an engineering question, and a measurement answers it.",
            numbers.distributional_hypothesis,
            "Skip-gram models of six widths were trained the same way on 60 sentences from a small grammar (seed 1) "
            "and evaluated on 200 new ones. On the training sentences, wider is always at least as good. On new ones, "
            "{best width} numbers work best here, with a loss of {its loss on new sentences:.4f}. The differences "
            "between 8, 16 and 32 are as small as those between seeds.",
            numbers.shared_contexts,
        ),
        LectureStop(
            "002.2",
            "Words can be described by features that people choose, such as “has four legs”, or by features that "
            "training finds. Skip-gram learns vectors from pairs of a word and a neighbor within a window of 2. Below "
            "are its pairs for one sentence, and then the words nearest to “cat” after 100 steps of training on "
            "six sentences such as “the cat sleeps on the sofa” and “the dog sleeps on the sofa”, with 8 numbers per "
            "word.",
            numbers.features,
            "Nobody told the model what an animal is, but cat and dog have the same neighbors, and the cosine of their "
            "vectors is {cosine of cat and dog:.2f}. (`clearhead lab neighbors` trains on stories.)",
            numbers.count_all_pairs,
        ),
        LectureStop(
            "002.3",
            "Given a sequence of words, which word is most likely to follow? Every earlier word may play a role, but "
            "some matter more: “Damian had a secret child, a girl, and had written in his will that his belongings "
            "will belong to …”. Here each earlier word votes on its own, whatever the order: of ten sentences, such as "
            "“the man had a girl and his house will belong to her”, n end in a candidate, and n_w of these contain "
            "the word w; the candidate scores n times the product of (n_w + 1)/(n + 2) over all w.",
            numbers.next_word,
            "The next word is “{next word}”, with a probability of {its probability:.2f}. Without “girl”, it would be "
            "{its probability without “girl”:.2f}: each “his” pulls the other way. `clearhead lab blank` asks the "
            "built-in model the same question.",
            numbers.deciding_word,
        ),
        LectureStop(
            "002.4",
            "A chat model continues a text word by word. GPT, a generative pre-trained transformer, is a multi-layer "
            "network that relies on parallel multi-head attention. "
            "It sees a window: w1 … w8 → w9, then w2 … w9 → w10, with a context length of 8. "
            "Words that have left the window have no influence. Here, the next word is the most frequent one after the "
            "longest part of the window that a short story contains.",
            numbers.generated_words,
            "With 8 words, the generated text follows the story. With 2, the model cannot tell after “lazy dog” where "
            "in the story it is, and goes in circles. `clearhead lab window` generates with the built-in model.",
            numbers.first_out_of_reach,
        ),
        LectureStop(
            "002.5",
            "A word is a row of 32 numbers, 1 × 32, and a sequence of eight words is a matrix, 8 × 32. Looking up a "
            "row in a table is a matrix product too: one-hot rows times the table. The words are “the quick brown fox "
            "jumps over the lazy”; the numbers are random here, always the same ones for the same word.",
            numbers.feature_vectors,
            "Each one-hot row has a single 1 and picks one row of the table. The matrix has {numbers in the matrix} "
            "numbers.",
            numbers.count_rows,
        ),
        LectureStop(
            "002.6",
            "Two matrices, W^Q and W^K, turn the eight words into a query matrix and a key matrix, both 8 × 32. Query "
            "(8 × 32) times key transposed (32 × 8) is 8 × 8: each cell is the dot product of one word's query and "
            "one word's key.",
            numbers.query_and_key,
            "Row 2, column 1 is q2 · k1, {q2 · k1:.4f}: how well “the” matches what “quick” is looking for. The "
            "table is not symmetric, and q1 · k2 is {q1 · k2:.4f}: what a word looks for is not what it offers. "
            "(Lecture 001 writes qi - Kj, but means the dot product; the first row of Keyᵀ in 002 should have the "
            "subscript 1 throughout.)",
            numbers.equal_score,
        ),
        LectureStop(
            "002.7",
            "Language unfolds in time: a word can depend on the words before it, never on those after. So "
            "the cells above the diagonal are set to -inf, and the softmax of each row turns them into "
            "weights of exactly 0. As in the lecture, the scores are not divided by √d_k.",
            numbers.temporal_dimension,
            "The weights form a lower triangle, and each row sums to 1. The first word has only itself to attend to, "
            "so its weight is 1 whatever its score.",
            numbers.larger_weight,
        ),
        LectureStop(
            "002.8",
            "A third matrix, W^V, gives the value matrix. Its width can differ from that of queries and "
            "keys; the lecture's matrix is 8 × 8. Weight (8 × 8) times value (8 × 8) gives the head's "
            "output: row 2 is P21 v1 + P22 v2.",
            numbers.weighted_values,
            "Row 1 of the output is v1 itself. Row 2 mixes two values with the weights {P21:.3f} and {P22:.3f}; row 8 "
            "mixes all eight.",
            numbers.mixed_by_hand,
        ),
        LectureStop(
            "002.9",
            "The same kind of head twice, on 64 random words: word by word in loops, the way it is explained, and as "
            "five matrix products, the way it is computed (three projections, query times key, and weight times "
            "value). The numbers agree up to rounding.",
            numbers.loops_and_matrices,
            "Written naively, the loops compute the same keys and values again for every word that looks back. The "
            "matrices also compute the masked half, but each product is a single step that uses the whole processor. "
            "The times depend on your machine.",
            numbers.count_multiplications,
        ),
        LectureStop(
            "002.10",
            "A head is a table of who attends to whom, and so a representation of one relationship between words. "
            "These heads are designed by hand: the features of a word are its kind, one-hot, W^K is ten times the "
            "identity, and W^Q says which kind of word looks for which other kind.",
            numbers.one_relationship,
            "“fox” puts its weight on “quick” and “brown”. A different W^Q expresses a different relationship between "
            "the same words. Words with no query of their own attend evenly to themselves and all earlier words. "
            "(In Python, `ch.heads(model)` measures how well the heads of a trained model play such roles.)",
            numbers.weight_on_old,
        ),
        LectureStop(
            "002.11",
            "Beyond the lecture: why training works. After “The quick brown fox jumps over the lazy”, the "
            "model has a logit z for each word of a vocabulary of four. The softmax turns logits into probabilities p, "
            "and the loss is the cross-entropy: -ln p of the word that comes next in the text, “dog”. Its gradient "
            "with respect to the logits is p - y, where y is 1 for “dog” and 0 for the rest. A step of gradient "
            "descent subtracts it, times the learning rate.",
            numbers.one_token_loss,
            "Only the right word has a negative gradient, so only its logit rises; the more probability a wrong word "
            "has, the further its logit falls. In one step, p of “dog” rises from {p of dog:.5f} to "
            "{p after one step:.5f}, and the loss falls from {loss:.3f} to {loss after one step:.3f}.",
            numbers.gradient_of_right_word,
        ),
    ),
)
