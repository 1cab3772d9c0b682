"""Lecture 002: one attention head, by matrices."""

from __future__ import annotations

from clearhead.lectures import numbers002 as numbers
from clearhead.lectures.stop import Lecture, LectureStop, Question
from clearhead.model.lectures import head_as_loops

LECTURE = Lecture(
    "002",
    "One attention head, by matrices",
    (
        LectureStop(
            "002.1",
            "Two kinds of questions",
            "What determines the meaning of a word? That is a conceptual question, and the distributional hypothesis "
            "answers it: words in similar surroundings have similar meanings, such as cat and dog in “the cat gets "
            "fed” and “the dog gets fed”. Why 300 numbers per word, and not 200 or 500? That is an engineering "
            "question, and a measurement answers it.",
            numbers.distributional_hypothesis,
            "Word vectors were computed from co-occurrence counts in 400 stories, with 1 to 128 numbers each, and each "
            "animal, place and thing was asked for its nearest words. {best width} numbers work best here: "
            "{its share:.0%} are of the same kind. With fewer, the kinds are not told apart; with more, accidents of "
            "these stories count too.",
            Question(
                "“I have to make sure that the cat gets fed”, “I forgot to make sure that the dog gets fed”: how many "
                "different words stand within two places of both cat and dog?",
                numbers.shared_contexts,
                "List the two words before and the two after cat, and do the same for dog.",
                "that, the, gets and fed: {answer}. By its neighbors, nobody could tell cat from dog here.",
            ),
        ),
        LectureStop(
            "002.2",
            "Learned features: skip-gram",
            "One can describe words by features chosen by hand, or let training find them. Skip-gram learns vectors "
            "from pairs of a word and a neighbor within a window of 2. A language model learns its embeddings while it "
            "learns to predict; below are cosines between those of the built-in model.",
            numbers.features,
            "Nobody told the model what an animal is, but the cosine of cat and dog is {cosine of cat and dog:.2f}, "
            "and that of cat and park {cosine of cat and park:.2f}. (`clearhead lab neighbors` trains a skip-gram.)",
            Question(
                "How many training pairs does “The quick brown fox jumps over the lazy dog” give with a window of 2?",
                numbers.count_pairs,
                "A word in the middle has four neighbors; count the two words at each end separately.",
                "2 + 3 + 5 · 4 + 3 + 2 = {answer}.",
            ),
        ),
        LectureStop(
            "002.3",
            "The main task of a language model",
            "Given a sequence of words, which one is most likely to follow? Every earlier word may play a role, but "
            "some count more: “Damian had a secret child, a girl, and had written in his will that his belongings will "
            "belong to …”. Attribution splits the logit of “her” by where heads brought it from; ablation removes one "
            "token and measures the effect.",
            numbers.next_word,
            "The model says “her” with {probability of “her”:.2%}. What the heads at the last token bring in its "
            "favor comes mostly from one word. Ablation also counts the detours: most words of the first half matter, "
            "because other words have taken something in from them.",
            Question(
                "From which of these words do the heads at the blank bring the most for “her”?",
                numbers.deciding_word,
                "Look at the column of attributions.",
                "From “{answer}”: it is the word that says who inherits.",
                options=numbers.DECIDERS,
            ),
        ),
        LectureStop(
            "002.4",
            "The task of ChatGPT",
            "A chat model continues a text word by word: w1 … w8 → w9, then w2 … w9 → w10, with a context length of 8. "
            "What has left the window has no influence. Here the built-in model is limited to 8 tokens.",
            numbers.sliding_window,
            "With 8 tokens, the model has forgotten what Ella owned and invents something; with the whole text in its "
            "context, it knows. Reversing the tokens outside the window changes nothing.",
            Question(
                "With a context length of 8: which is the first word that the model sees when it generates w20? Enter "
                "its number.",
                numbers.first_in_window,
                "The eight words before w20 end with w19.",
                "w12 … w19 → w20, so it is number {answer}.",
            ),
        ),
        LectureStop(
            "002.5",
            "Words as feature vectors",
            "A word is a row of 32 numbers, 1 × 32, and a sequence of eight words is a matrix, 8 × 32. Looking up a "
            "row in a table is a matrix product too: one-hot rows times the table. The words are “the quick brown fox "
            "jumps over the lazy”; the table is random here, because nothing below depends on its values.",
            numbers.feature_vectors,
            "Each one-hot row has a single 1 and picks one row of the table. The matrix has {numbers in the matrix} "
            "numbers.",
            Question(
                "Which row of the 8 × 32 matrix is equal to row 1?",
                numbers.equal_row,
                "A static table has one vector per word. Which word occurs twice?",
                "Row {answer}: “the” occurs twice, and without a position encoding its two rows are equal.",
            ),
        ),
        LectureStop(
            "002.6",
            "Queries, keys, and all dot products",
            "Two matrices, W^Q and W^K, turn the eight words into a query matrix and a key matrix, both 8 × 32. Query "
            "(8 × 32) times key transposed (32 × 8) is 8 × 8: each cell is the dot product of one word's query and "
            "one word's key.",
            numbers.query_and_key,
            "Row 2, column 4 is q2 · k4, {q2 · k4:.4f}: how well “fox” answers what “quick” is looking for. Columns 1 "
            "and 7 are equal, and so are rows 1 and 7, because both words are “the”.",
            Question(
                "How many dot products are there in query times key transposed?",
                lambda: numbers.scores().numel(),
                "One for each cell.",
                "8 · 8 = {answer}, each of two vectors with 32 numbers.",
            ),
        ),
        LectureStop(
            "002.7",
            "Mask and softmax",
            "Language unfolds in time: a word may depend on the words before it, never on those after. So the cells "
            "above the diagonal are set to -inf, and the softmax of each row turns them into weights of exactly 0.",
            numbers.temporal_dimension,
            "The weights form a lower triangle, and each row sums to 1. The first word has only itself to attend to, "
            "so its weight is 1 whatever its score.",
            Question(
                "How many of the 64 cells are set to -inf?",
                numbers.masked_cells,
                "No cell in row 8, one in row 7, …, seven in row 1.",
                "0 + 1 + 2 + 3 + 4 + 5 + 6 + 7 = {answer}.",
            ),
        ),
        LectureStop(
            "002.8",
            "Values, and the weighted sum",
            "A third matrix, W^V, makes the value matrix. It may have another width than queries and keys; the "
            "lecture's is 8 × 8. Weight (8 × 8) times value (8 × 8) gives the head's output: row 2 is P21 v1 + P22 v2.",
            numbers.weighted_values,
            "Row 1 of the output is v1 itself. Row 2 mixes two values with the weights {P21:.3f} and {P22:.3f}; row 8 "
            "mixes all eight.",
            Question(
                "Let P21 = 0.25. The first number of v1 is 4, that of v2 is 8. What is the first number in row 2 of "
                "the output?",
                numbers.mixed_by_hand,
                "The weights of a row sum to 1, so P22 = 0.75.",
                "0.25 · 4 + 0.75 · 8 = {answer}.",
            ),
        ),
        LectureStop(
            "002.9",
            "Loops and matrices",
            "The same head twice: word by word in loops, as one explains it, and as matrix products, as one computes "
            "it: three projections, query times key, weight times value. The numbers agree up to rounding.",
            numbers.loops_and_matrices,
            "The number of products in the loops grows with the square of the length; the number of matrix products "
            "stays the same, and each uses the whole processor. The times depend on your machine.",
            Question(
                "How many products do the loops take for three words?",
                lambda: numbers.count_products(head_as_loops, 3),
                "Each word needs one query and, for each word up to it, a key, a dot product and a value.",
                "3 queries, and 3 products for each of 1 + 2 + 3 pairs: 3 + 18 = {answer}. As matrices, it takes 5: "
                "x W^Q, x W^K, x W^V, Q Kᵀ and P V.",
            ),
        ),
        LectureStop(
            "002.10",
            "A head is a relationship",
            "A head is a table of who attends to whom, and so a representation of one relationship between words. In "
            "the built-in model, one head relates each token to the one before it; another relates a pronoun to what "
            "it stands for.",
            numbers.one_relationship,
            "In the second head, “She” attends to “Ella”. “her”, at the end, attends to the thing that was lost, which "
            "the model names next: one head can serve more than one purpose.",
            Question(
                "Which of these does “it” attend to most in the second head?",
                numbers.referent,
                "Look for the row of “it”.",
                "“{answer}”: the thing that is green.",
                options=numbers.REFERENTS,
            ),
        ),
    ),
)
