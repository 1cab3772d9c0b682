"""The numbers of lecture 002. Vectors are rows; eight words of 32 features, as in the lecture."""

from __future__ import annotations

import math
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from clearhead.classics.skip_gram import pairs
from clearhead.labs.lab import Findings, Lines, ResultPart, Table, Value
from clearhead.labs.matrix import time_run
from clearhead.lectures.cross_entropy import next_word_loss
from clearhead.lectures.inputs import inputs_of
from clearhead.lectures.leave_one_out import effects_of, predict_next
from clearhead.lectures.random_numbers import seed_of, uniform
from clearhead.lectures.relationship_head import query_matrix, relate
from clearhead.lectures.sliding_window import slide_window
from clearhead.lectures.stop import StopNumbers
from clearhead.lectures.width_sweep import count_pairs, sweep, train
from clearhead.lectures.worked import name_tokens, table
from clearhead.model.attention_steps import compare, mask, mix, project, softmax
from clearhead.model.lectures import head_as_loops, head_as_matrices
from clearhead.model.mask import causal_matrix
from clearhead.text.word_corpus import split_words

SKIP_GRAM, NEXT_WORD, WINDOW = (inputs_of(stop) for stop in ("002.2", "002.3", "002.4"))
CAT, DOG = SKIP_GRAM["text"][:2]
SHOWN = 5  # nearest words
SENTENCES, SWEEP_SEED = inputs_of("002.1")["sentences"], inputs_of("002.1")["seed"]
WORDS = split_words(inputs_of("002.5")["sentence"])
WIDTH, VALUE_WIDTH = 32, inputs_of("002.5")["d_v"]
# The page's projections: uniform numbers up to this size. W^V is the first columns of a wider matrix.
PROJECTION_SIZE, MAX_VALUE_WIDTH = 0.3, 10
SEEDS = {"W_Q": 1, "W_K": 2, "W_V": 3}
SHORT_WINDOW, LONG_STORY, FIRST_STEPS = 2, 20, 5  # what the page's text suggests trying, and the rows shown
REPEATS = 3  # of which the fastest is shown


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
    return [
        neighbor for center, neighbor in pairs(split_words(sentence), SKIP_GRAM["window"]) if center == word
    ]


def shared_contexts() -> float:
    return len(set(contexts(CAT, "cat")) & set(contexts(DOG, "dog")))


def features() -> StopNumbers:
    """Skip-gram's training pairs for a sentence, and vectors trained on a few others."""
    words = split_words(SKIP_GRAM["sentence"])
    by_center = [list(group) for _, group in groupby(pairs(words, SKIP_GRAM["window"]), key=itemgetter(0))]
    samples: list[list[Value]] = [[" ".join(f"({a}, {b})" for a, b in group)] for group in by_center]
    cosines = trained_cosines()
    word = SKIP_GRAM["word"]
    nearest = sorted(cosines[word].items(), key=itemgetter(1), reverse=True)[1 : SHOWN + 1]
    parts: list[ResultPart] = [
        Table("skip-gram training pairs", words, ["(center, neighbor)"], samples),
        Table(
            f"nearest to {word}",
            [other for other, _ in nearest],
            ["cosine"],
            [[value] for _, value in nearest],
        ),
    ]
    return {"cosine of cat and dog": cosines["cat"]["dog"]}, parts


@cache
def trained_cosines() -> dict[str, dict[str, float]]:
    """The cosine of each pair of words, after skip-gram training."""
    sentences = [split_words(line) for line in SKIP_GRAM["text"]]
    vocabulary = sorted({word for words in sentences for word in words})
    counts = count_pairs(sentences, vocabulary, SKIP_GRAM["window"])
    E, _ = train(counts, SKIP_GRAM["width"], SKIP_GRAM["seed"], SKIP_GRAM["steps"])
    E = torch.nn.functional.normalize(E, dim=1)
    rows = (dict(zip(vocabulary, row, strict=True)) for row in (E @ E.T).tolist())
    return dict(zip(vocabulary, rows, strict=True))


def count_all_pairs() -> float:
    return len(list(pairs(split_words(SKIP_GRAM["sentence"]), 3)))


def next_word() -> StopNumbers:
    """The likeliest next words in a counted model, and how much each earlier word favors the first."""
    past = split_words(NEXT_WORD["prompt"])
    chances = predict_next(NEXT_WORD["text"], past)
    word = next(iter(chances))
    without = [other for other in past if other != "girl"]
    parts: list[ResultPart] = [
        Table("next word", [*chances], ["probability"], [[value] for value in chances.values()]),
        Table(
            f"drop in the probability of “{word}” without each word",
            name_tokens(past),
            ["effect"],
            [[effect] for effect in effects_of(NEXT_WORD["text"], past, word)],
        ),
    ]
    findings: Findings = {
        "next word": word,
        "its probability": chances[word],
        "its probability without “girl”": predict_next(NEXT_WORD["text"], without)[word],
    }
    return findings, parts


DECIDERS = ("secret", "girl", "his", "belongings")


def deciding_word() -> float:
    """The index in `DECIDERS` of the word without which “her” loses the most probability."""
    past = split_words(NEXT_WORD["prompt"])
    effects = effects_of(NEXT_WORD["text"], past, "her")
    suspected = [effects[past.index(word)] for word in DECIDERS]
    return suspected.index(max(suspected))


def generated_words() -> StopNumbers:
    """A story continued through a window of eight words, and through one of two."""
    text = split_words(WINDOW["text"])
    parts: list[ResultPart] = []
    start, generated = text[: WINDOW["length"]], {}
    for length, count in ((WINDOW["length"], WINDOW["generated"]), (SHORT_WINDOW, LONG_STORY)):
        steps = slide_window(text, start, length, count)
        rows: list[list[Value]] = [
            [" ".join(step.window), step.next, f"{step.count}/{step.total}"] for step in steps[:FIRST_STEPS]
        ]
        labels = [step.label for step in steps[:FIRST_STEPS]]
        columns = ["the model sees", "next word", "follows"]
        parts.append(Table(f"context length {length}", labels, columns, rows))
        generated[f"context length {length}"] = " ".join([*start, *(step.next for step in steps)])
    return {**generated}, parts


def first_out_of_reach() -> float:
    """The number of the first word whose window no longer holds w5."""
    return next(predicted for predicted in range(6, 100) if predicted - WINDOW["length"] > 5)


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


class Multiplications(TorchFunctionMode):
    """Count the multiplications of two numbers in each product of matrices, vectors or numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: list[int] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.__name__ in ("matmul", "__matmul__"):
            self.counts.append(result.numel() * args[0].shape[-1])
        elif func.__name__ in ("mul", "__mul__"):
            self.counts.append(result.numel())
        return result


def random_head() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The words and the matrices of the page's head with random numbers: T × 32, 32 × 32 twice, 32 × d_v."""
    words, d_v, seed = (inputs_of("002.9")[name] for name in ("words", "d_v", "seed"))
    size = WIDTH**-0.5
    x = uniform(1.0, seed, words, WIDTH)
    W_Q, W_K, W_V = (uniform(size, seed + 1 + i, WIDTH, width) for i, width in enumerate((WIDTH, WIDTH, d_v)))
    return x, W_Q, W_K, W_V


def loops_and_matrices() -> StopNumbers:
    """One head in loops and as five products: the multiplications, the difference and the times."""
    head = random_head()
    (T, C), d_v = head[0].shape, head[3].shape[1]
    counts, times, results = [], [], []
    for compute in (head_as_loops, head_as_matrices):
        with Multiplications() as counter:
            compute(*head, divided=False)
        counts.append(counter.counts)
        seconds, result = time_run(partial(compute, *head, divided=False), REPEATS)
        times.append(seconds)
        results.append(result)
    shapes = ((T, C, C), (T, C, C), (T, C, d_v), (T, C, T), (T, T, d_v))
    rows: list[list[Value]] = [
        [f"({n} × {m}) · ({m} × {p})", count] for (n, m, p), count in zip(shapes, counts[1], strict=True)
    ]
    products = ["Q = X W^Q", "K = X W^K", "V = X W^V", "S = Q Kᵀ", "P V"]
    parts: list[ResultPart] = [
        Table(f"five products, {T} words", products, ["shapes", "multiplications"], rows),
        Table(
            "loops and matrices",
            ["loops", "matrices"],
            ["multiplications", "milliseconds"],
            [[sum(each), 1000 * seconds] for each, seconds in zip(counts, times, strict=True)],
        ),
    ]
    findings: Findings = {
        "largest difference": (results[0] - results[1]).abs().max().item(),
        "loops / matrices, time": times[0] / times[1],
    }
    return findings, parts


def count_multiplications() -> float:
    """The number of multiplications in query times key transposed: one per feature for every cell."""
    return scores().numel() * WIDTH


def one_relationship() -> StopNumbers:
    """The weights of a head designed for one relationship, and what two other heads find in the same words."""
    inputs = inputs_of("002.10")
    names = name_tokens([word for word, _ in inputs["words"]])
    kinds = [kind for _, kind in inputs["words"]]
    parts: list[ResultPart] = []
    findings: Findings = {}
    for kind, sought in inputs["relationships"].values():
        weights = relate(query_matrix(kind, sought), kinds)
        parts.append(table(f"{kind} → {sought}", names, names, weights, shaded=True))
        row = kinds.index(kind)
        found = [f"{names[j]} {weights[row, j]:.3f}" for j, each in enumerate(kinds[:row]) if each == sought]
        findings[f"{names[row]} attends to"] = ", ".join(found)
    return findings, parts


def weight_on_old() -> float:
    """The weight of a noun on one of the three adjectives in “a tired old gray duck”."""
    kinds = ["determiner", "adjective", "adjective", "adjective", "noun"]
    return relate(query_matrix("noun", "adjective"), kinds)[4, 2].item()


def one_token_loss() -> StopNumbers:
    """The cross-entropy of one next word, its gradient with respect to the logits, and steps against the gradient."""
    inputs = inputs_of("002.11")
    logits = torch.tensor(inputs["logits"], dtype=torch.float64)
    rows, losses = [], []
    for _ in range(inputs["steps"] + 1):
        loss, p, gradient = next_word_loss(logits, inputs["target"])
        losses.append(loss)
        rows.append((logits, p, gradient))
        logits = logits - inputs["rate"] * gradient
    y = [float(i == inputs["target"]) for i in range(len(logits))]
    (before, p, gradient), (after, p_after, _) = rows[:2]
    columns = ["z", "p", "y", "p - y", "z after one step", "p after one step"]
    values = torch.stack([before, p, torch.tensor(y), gradient, after, p_after], dim=1)
    right = inputs["words"][inputs["target"]]
    parts: list[ResultPart] = [
        table("one step", inputs["words"], columns, values),
        Lines("loss by step", "steps", "loss", [float(i) for i in range(len(losses))], {"loss": [*losses]}),
    ]
    findings: Findings = {
        f"p of {right}": p[inputs["target"]].item(),
        "loss": losses[0],
        "p after one step": p_after[inputs["target"]].item(),
        "loss after one step": losses[1],
    }
    return findings, parts


def gradient_of_right_word() -> float:
    """p - y of the right word if p = 1/4: four words with equal logits."""
    return next_word_loss(torch.zeros(4, dtype=torch.float64), 0)[2][0].item()
