"""Was any digit a 1? Long-range information carried through many states, or by one attention step.

Half of the sequences are all 0s; each of the others has a single 1, in its first half. After the last digit
the network predicts whether there was a 1. Chance is 0.5. B sequences, T digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.inspect.trace import Trace
from clearhead.labs.lab import Lines, Result, ResultPart, Table, Value, Watch
from clearhead.labs.small_networks import one_thread, take_step
from clearhead.model.config import Config
from clearhead.model.transformer import Transformer
from clearhead.networks import make_network

SHORT, LONG = (5, 20), 101  # lengths of training sequences
LENGTHS = (5, 10, 20, 35, 50, 75, 101, 150, 200)  # test lengths
BACK = (1, 2, 5, 10, 20, 50, 75, 100)  # distance of the 1 from the last digit
KINDS = ("n-gram", "Elman", "LSTM", "attention")
RATE = 0.003
KNOWN = 4  # digits that the n-gram model of order 5 can see

Predict = Callable[[Tensor], Tensor]  # B T digits to B answers


def run(trained: str, seeds: int, steps: int, batch: int, width: int, watch: Watch) -> Result:
    """Train every kind on the same sequences, with the same number of steps, optimizer and learning rate."""
    with one_thread():
        findings, parts = _compare(trained, seeds, steps, batch, width, watch)
    settings = {"trained": trained, "seeds": seeds, "steps": steps, "batch": batch, "width": width}
    return Result("any-one", settings, findings, parts)


def _compare(
    trained: str, seeds: int, steps: int, batch: int, width: int, watch: Watch
) -> tuple[dict[str, Value | bool], list[ResultPart]]:
    ways = ("short", "long") if trained == "both" else (trained,)
    findings: dict[str, Value | bool] = {}
    parts: list[ResultPart] = []
    looks: list[tuple[str, list[Value]]] = []
    for way in ways:
        scores: dict[str, list[list[float]]] = {kind: [] for kind in KINDS}  # for each seed, by length
        looks.clear()  # keep only the last, and longest, training length
        for seed in range(seeds):
            scores["n-gram"].append(_examine(_count(sequences(way, seed, steps, batch))))
            for kind in KINDS[1:]:
                network = _make(kind, width, seed)
                _train(network, sequences(way, seed, steps, batch), watch)
                scores[kind].append(_examine(partial(_say, network)))
                if isinstance(network, Transformer):
                    looks += [(f"seed {seed}, head {i}", row) for i, row in enumerate(_look(network))]
        name = (
            f"trained on {SHORT[0]} to {SHORT[1]} digits" if way == "short" else f"trained on {LONG} digits"
        )
        lines = _lines(name, scores)
        parts.append(lines)
        at = LENGTHS.index(LONG)
        for kind in KINDS:
            findings[f"{kind}, {name}: accuracy at {LONG}"] = lines.lines[kind][at]
        for kind in KINDS:
            right = [of_lengths[-1] == 1 for of_lengths in scores[kind]]
            findings[f"{kind}, {name}: seeds without an error at {LENGTHS[-1]}"] = sum(right)
    looks.append(("uniform", [1 / LONG] * len(BACK)))
    parts.append(
        Table(
            f"weight on the 1 among {LONG} digits",
            [row for row, _ in looks],
            [f"{back} back" for back in BACK],
            [values for _, values in looks],
            shaded=True,
        )
    )
    return findings, parts


def sequences(way: str, seed: int, steps: int, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The training data of each step, B T digits and B answers; the same for every kind."""
    random = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        T = LONG if way == "long" else int(torch.randint(SHORT[0], SHORT[1] + 1, (1,), generator=random))
        digits, answers = torch.zeros(batch, T, dtype=torch.int64), torch.arange(batch) % 2
        digits[torch.arange(batch), torch.randint(T // 2, (batch,), generator=random)] = answers
        yield digits, answers


def _make(kind: str, width: int, seed: int) -> torch.nn.Module:
    """A network of this kind. The transformer has no positions, so unseen lengths are no harder for it."""
    torch.manual_seed(seed)
    longest = max(LENGTHS)
    if kind == "attention":
        return make_network(Config(2, longest, n_block=1, n_head=2, d_model=width, position="none"))
    return make_network(RecurrentConfig("elman" if kind == "Elman" else "lstm", 2, longest, 1, width))


def _train(network: torch.nn.Module, batches: Iterator[tuple[Tensor, Tensor]], watch: Watch) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.0)
    for digits, answers in batches:
        watch()
        take_step(network, optimizer, F.cross_entropy(network(digits)[:, -1], answers))


@torch.no_grad()
def _say(network: torch.nn.Module, digits: Tensor) -> Tensor:
    predicted: Tensor = network(digits)[:, -1].argmax(-1)
    return predicted


def _count(batches: Iterator[tuple[Tensor, Tensor]]) -> Predict:
    """Predict the most frequent answer after the last few digits, and 0 after digits not seen in training."""
    counts = torch.zeros(2**KNOWN, 2)
    for digits, answers in batches:
        counts.index_put_((_code(digits), answers), torch.ones(len(digits)), accumulate=True)
    return lambda digits: counts[_code(digits)].argmax(-1)


def _code(digits: Tensor) -> Tensor:
    """The last few digits as one number: B."""
    return digits[:, -KNOWN:] @ 2 ** torch.arange(KNOWN)


def _examine(predict: Predict) -> list[float]:
    """The accuracy at each length over all possible sequences; all those with a 1 together count for half."""
    right = []
    for T in LENGTHS:
        digits = torch.eye(T // 2 + 1, T, dtype=torch.int64)
        digits[-1] = 0  # the last has no 1
        predicted = predict(digits)
        right.append((predicted[:-1].float().mean().item() + float(predicted[-1] == 0)) / 2)
    return right


def _look(network: Transformer) -> list[list[Value]]:
    """The attention weight of each head from the last digit to the 1: heads × distances."""
    digits = torch.zeros(len(BACK), LONG, dtype=torch.int64)
    places = LONG - 1 - torch.tensor(BACK)
    digits[torch.arange(len(BACK)), places] = 1
    with torch.no_grad():
        weights = Trace(network, digits, [[]] * len(BACK), single=False).weights(0)
    rows: list[list[Value]] = weights[torch.arange(len(BACK)), :, -1, places].T.tolist()
    return rows


def _lines(name: str, scores: dict[str, list[list[float]]]) -> Lines:
    """The mean over seeds, with the lowest and highest."""
    by_length = {kind: list(zip(*of_seeds, strict=True)) for kind, of_seeds in scores.items()}
    return Lines(
        name,
        "digits",
        "accuracy",
        [float(T) for T in LENGTHS],
        {kind: [sum(each) / len(each) for each in rows] for kind, rows in by_length.items()},
        {kind: [(min(each), max(each)) for each in rows] for kind, rows in by_length.items()},
    )
