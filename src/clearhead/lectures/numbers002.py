"""The numbers of lecture 002. Vectors are rows; eight words of 32 features, as in the lecture."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from clearhead.classics.skip_gram import pairs
from clearhead.labs import blank, matrix, window
from clearhead.labs.catalog import ELLA, WILL
from clearhead.labs.lab import Findings, Lines, ResultPart, Table, Value
from clearhead.labs.neighbors import FOX
from clearhead.lectures.numbers000 import head_scores
from clearhead.lectures.random_numbers import seed_of, uniform
from clearhead.lectures.stop import StopNumbers
from clearhead.lectures.width_sweep import sweep
from clearhead.lectures.worked import name_tokens, stories, table, trace_of
from clearhead.model.attention_steps import compare, mask, mix, project, softmax
from clearhead.model.lectures import head_as_loops, head_as_matrices
from clearhead.model.mask import causal_matrix
from clearhead.text.word_corpus import split_words

CAT = "I have to make sure that the cat gets fed"
DOG = "I forgot to make sure that the dog gets fed"
WINDOW = 2
CONTEXT = 8
SENTENCES, SWEEP_SEED = 60, 1  # for the models of several widths
WORDS = split_words(FOX)[:8]
WIDTH, VALUE_WIDTH = 32, 8
# The page's projections: uniform numbers up to this size. W^V is the first columns of a wider matrix.
PROJECTION_SIZE, MAX_VALUE_WIDTH = 0.3, 10
SEEDS = {"W_Q": 1, "W_K": 2, "W_V": 3}


def distributional_hypothesis() -> StopNumbers:
    """The contexts of two words, and the losses of skip-gram models of several widths."""
    cat, dog = (contexts(sentence, word) for sentence, word in ((CAT, "cat"), (DOG, "dog")))
    losses = width_losses()
    held_out, training = zip(*losses.values(), strict=True)
    parts: list[ResultPart] = [
        Table(
            "words within two positions", ["cat", "dog"], ["neighbors"], [[" ".join(cat)], [" ".join(dog)]]
        ),
        Lines(
            "loss by width",
            "width",
            "loss",
            [float(width) for width in losses],
            {"on new sentences": [*held_out], "on the training sentences": [*training]},
        ),
    ]
    best = min(losses, key=lambda width: losses[width][0])
    return {"best width": best, "its loss on new sentences": losses[best][0]}, parts


@cache
def width_losses() -> dict[int, tuple[float, float]]:
    return sweep(SENTENCES, SWEEP_SEED)


def contexts(sentence: str, word: str) -> list[str]:
    return [neighbor for center, neighbor in pairs(split_words(sentence), WINDOW) if center == word]


def shared_contexts() -> float:
    return len(set(contexts(CAT, "cat")) & set(contexts(DOG, "dog")))


def features() -> StopNumbers:
    """Skip-gram's training pairs, and cosines between the embeddings that the model has learned."""
    by_center = [
        list(group) for _, group in groupby(pairs(split_words(FOX), WINDOW), key=lambda pair: pair[0])
    ]
    samples: list[list[Value]] = [[" ".join(f"({a}, {b})" for a, b in group)] for group in by_center]
    words = ("cat", "dog", "duck", "park", "village", "drum", "kite")
    E = static_vectors(words)
    cosines = E @ E.T
    parts: list[ResultPart] = [
        Table("skip-gram training pairs", split_words(FOX), ["(center, neighbor)"], samples),
        table("cosine between learned vectors", words, words, cosines, shaded=True),
    ]
    return {
        "cosine of cat and dog": cosines[0, 1].item(),
        "cosine of cat and park": cosines[0, 3].item(),
    }, parts


def static_vectors(words: tuple[str, ...]) -> Tensor:
    """The model's embeddings, minus their mean, with length 1."""
    table = stories().transformer().embedding.weight.detach().double()
    ids = [stories().tokenizer.encode(f" {word}")[0] for word in words]
    return torch.nn.functional.normalize(table[ids] - table.mean(0), dim=1)


def count_pairs() -> float:
    return len(list(pairs(split_words(FOX), 3)))


def next_word() -> StopNumbers:
    """The likeliest next tokens, and which earlier tokens determine one of them. Positions start at 1."""
    fox = FOX.removesuffix(" dog")
    chances = stories().logits(fox)[-1].softmax(-1).topk(3)
    tokens = stories().tokenizer.pieces(chances.indices.tolist())
    decided = blank.run(WILL, "her", stories())
    effects = decided.part("attribution and ablation by token")
    children, pronouns = ("girl", "boy"), ("her", "him")
    swapped = torch.stack([next_chances(WILL.replace("girl", child), pronouns) for child in children])
    parts: list[ResultPart] = [
        table(f"{fox} …", [each.strip() for each in tokens], ["probability"], chances.values[:, None]),
        table("probability with a girl and with a boy", children, pronouns, swapped),
        Table(
            "attribution by token",
            [f"{i + 1} {row.split()[1]}" for i, row in enumerate(effects.rows)],
            effects.columns[:1],
            [row[:1] for row in effects.values],
            shaded=True,
        ),
    ]
    findings: Findings = {
        "probability of “her”": decided.findings["its probability"],
        "probability of “him” after “boy”": swapped[1, 1].item(),
    }
    return findings, parts


def next_chances(sentence: str, words: tuple[str, ...]) -> Tensor:
    """The probability of each word's first token after the sentence."""
    ids = [stories().tokenizer.encode(f" {word}")[0] for word in words]
    return stories().logits(sentence.rstrip())[-1].softmax(-1)[ids]


DECIDERS = ("secret", "girl", "his", "belongings")


def deciding_word() -> float:
    """The index in `DECIDERS` of the word from which the last position's heads bring the most for “her”."""
    effects = blank.run(WILL, "her", stories()).part("attribution and ablation by token")
    names = [row.split()[1] for row in effects.rows]
    moved = [
        max(float(str(values[0])) for name, values in zip(names, effects.values, strict=True) if name == word)
        for word in DECIDERS
    ]
    return moved.index(max(moved))


def sliding_window() -> StopNumbers:
    result = window.run(ELLA, CONTEXT, 6, stories())
    return result.findings, result.parts


def first_out_of_reach() -> float:
    """The number of the first word whose window no longer holds w5."""
    return next(predicted for predicted in range(6, 100) if predicted - CONTEXT > 5)


@cache
def vocabulary() -> tuple[list[str], Tensor]:
    """The distinct words of the sentence, and a table of random vectors, always the same ones for the same word."""
    words = list(dict.fromkeys(WORDS))
    return words, torch.stack([uniform(1.0, seed_of(word), WIDTH) for word in words])


def word_vectors() -> Tensor:
    """Eight words as 8 × 32: one-hot rows times the table."""
    words, E = vocabulary()
    one_hot = torch.eye(len(words), dtype=E.dtype)[[words.index(word) for word in WORDS]]
    return one_hot @ E


def feature_vectors() -> StopNumbers:
    words, E = vocabulary()
    ids = [words.index(word) for word in WORDS]
    one_hot = torch.eye(len(words), dtype=E.dtype)[ids]
    names = name_tokens(WORDS)
    columns = [f"f{i}" for i in (1, 2, 3, 4, 32)]
    parts: list[ResultPart] = [
        table("one-hot rows", names, words, one_hot),
        table("feature vectors, 8 × 32", names, columns, word_vectors()[:, [0, 1, 2, 3, 31]]),
    ]
    return {"numbers in the matrix": word_vectors().numel()}, parts


def count_rows() -> float:
    """The rows of the table: one for each distinct word."""
    return len(vocabulary()[1])


@cache
def matrices() -> tuple[Tensor, Tensor, Tensor]:
    """W^Q and W^K, 32 × 32, and W^V, 32 × 8."""
    W_Q, W_K = (uniform(PROJECTION_SIZE, SEEDS[name], WIDTH, WIDTH) for name in ("W_Q", "W_K"))
    W_V = uniform(PROJECTION_SIZE, SEEDS["W_V"], WIDTH, MAX_VALUE_WIDTH)[:, :VALUE_WIDTH]
    return W_Q, W_K, W_V


def scores() -> Tensor:
    W_Q, W_K, _ = matrices()
    return compare(project(word_vectors(), W_Q), project(word_vectors(), W_K))


def weights() -> Tensor:
    return softmax(mask(scores(), causal_matrix(8, 8)))


def query_and_key() -> StopNumbers:
    W_Q, W_K, _ = matrices()
    Q, K = project(word_vectors(), W_Q), project(word_vectors(), W_K)
    names = name_tokens(WORDS)
    findings: Findings = {
        "query matrix": " × ".join(map(str, Q.shape)),
        "transposed key matrix": " × ".join(map(str, K.T.shape)),
        "row 2, column 1 of the product": scores()[1, 0].item(),
        "q2 · k1": sum(q * k for q, k in zip(Q[1].tolist(), K[0].tolist(), strict=True)),
        "q1 · k2": scores()[0, 1].item(),
    }
    return findings, [table("query · keyᵀ, 8 × 8", names, names, scores(), shaded=True)]


def equal_score() -> float:
    """The index of the one of three cells that equals S31; rows and columns are numbered from 1."""
    S = scores()
    apart = [(S[i - 1, j - 1] - S[2, 0]).abs().item() for i, j in ((1, 3), (3, 7), (7, 3))]
    return apart.index(min(apart))


def temporal_dimension() -> StopNumbers:
    names = name_tokens(WORDS)
    masked = mask(scores(), causal_matrix(8, 8))
    sums = weights().sum(1)
    findings: Findings = {
        "smallest sum of a row of weights": sums.min().item(),
        "largest sum of a row of weights": sums.max().item(),
    }
    return findings, [
        table("masked scores", names, names, masked),
        table("weights", names, names, weights(), shaded=True),
    ]


def larger_weight() -> float:
    """The larger of two weights whose scores differ by ln 3."""
    return softmax(torch.tensor([math.log(3), 0.0], dtype=torch.float64))[0].item()


def weighted_values() -> StopNumbers:
    _, _, W_V = matrices()
    V = project(word_vectors(), W_V)
    output = mix(weights(), V)
    by_hand = weights()[1, 0] * V[0] + weights()[1, 1] * V[1]
    names, columns = name_tokens(WORDS), [str(i + 1) for i in range(VALUE_WIDTH)]
    findings: Findings = {
        "P21": weights()[1, 0].item(),
        "P22": weights()[1, 1].item(),
        "largest difference between row 2 and P21 v1 + P22 v2": (output[1] - by_hand).abs().max().item(),
    }
    return findings, [
        table("value matrix, 8 × 8", names, columns, V),
        table("weight · value, 8 × 8", names, columns, output),
    ]


def mixed_by_hand() -> float:
    return mix(torch.tensor([0.25, 0.75]), torch.tensor([[4.0], [8.0]])).item()


class Products(TorchFunctionMode):
    """Count the products of matrices and vectors."""

    count = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += func.__name__ in ("matmul", "__matmul__")
        return func(*args, **(kwargs or {}))


def count_products(compute: Callable[..., Tensor], count: int = 8) -> int:
    with Products() as counter:
        compute(torch.ones(count, WIDTH, dtype=torch.float64), *matrices())
    return counter.count


def loops_and_matrices() -> StopNumbers:
    x = word_vectors()
    apart = (head_as_loops(x, *matrices()) - head_as_matrices(x, *matrices())).abs().max().item()
    counts = [2, 4, 8, 16]
    products: list[list[Value]] = [
        [count_products(head_as_loops, count), count_products(head_as_matrices, count)] for count in counts
    ]
    timed = matrix.run(longest=16, width=WIDTH, repeats=3, seed=0)
    names = [f"{count} tokens" for count in counts]
    parts: list[ResultPart] = [
        Table("products", names, ["as loops", "as matrices"], products),
        *timed.parts[:2],
    ]
    return {
        "largest difference": apart,
        "speedup at 16 tokens": timed.findings["speedup at the longest"],
    }, parts


def count_multiplications() -> float:
    """The number of multiplications in query times key transposed: one per feature for every cell."""
    return scores().numel() * WIDTH


def one_relationship() -> StopNumbers:
    """For two heads of the model, the token that each token attends to most."""
    trace = trace_of(ELLA)
    names = name_tokens(trace.tokens)
    columns, values = [], []
    for role in ("previous", "antecedent"):
        block, number, _ = head_scores().best(role)
        best = trace.block[block].head[number].weights.max(-1)
        columns += [f"block {block}, head {number}", f"weight ({role})"]
        values += [[names[i] for i in best.indices.tolist()], best.values.tolist()]
    rows: list[list[Value]] = [list(row) for row in zip(*values, strict=True)]
    return {}, [Table("attends most to", names, columns, rows)]


def weight_on_old() -> float:
    """The weight of a noun on one of the three adjectives in “a tired old gray duck”."""
    return softmax(torch.tensor([0.0, 10, 10, 10, 0], dtype=torch.float64))[2].item()
