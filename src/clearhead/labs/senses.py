"""A word in two senses: one static vector, but contextual vectors that separate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.base_trace import stages
from clearhead.inspect.word_senses import map_senses
from clearhead.labs.lab import Findings, Lines, Points, Result, ResultPart, Table, Value, Watch
from clearhead.labs.sense_readers import KINDS, learn
from clearhead.labs.sense_sentences import SENSES
from clearhead.labs.small_networks import one_thread
from clearhead.language_model import LanguageModel

LATE = 3  # compare this many blocks before the end, where a vector has taken in its context
COLUMNS = ["the first two", "same sense", "other sense", "nearest has the same sense"]


def run(
    word: str, one: str, other: str, seeds: int, steps: int, model: LanguageModel | None, watch: Watch
) -> Result:
    """Compare the senses in small networks trained here on the word's sentences, and in a pretrained model."""
    groups = [_read(given, number, word) for number, given in enumerate((one, other))]
    learns = seeds > 0 and not one.strip() and not other.strip()  # the small networks know no other sentences
    if model is None and not learns:
        raise UserError("no model, and no sentences to train on: name a model, or use bats or bank")
    rows: dict[str, list[Value]] = {}
    findings: Findings = {}
    parts: list[ResultPart] = []
    if learns:
        with one_thread():
            rows, findings, parts = _learn(word, groups, seeds, steps, watch)
    if model is not None:
        looked = _look(model, word, groups)
        rows["the model"] = looked.row(-1)
        findings, parts = _found(looked) | findings, _draw(looked) + parts
    if learns:
        parts.insert(0, Table("at the end", list(rows), COLUMNS, list(rows.values())))
    settings = {
        "word": word,
        "one": " / ".join(groups[0]),
        "other": " / ".join(groups[1]),
        "seeds": seeds,
        "steps": steps,
    }
    return Result("senses", settings, findings, parts)


@dataclass(frozen=True)
class Looked:
    """The vectors of the word in a model: stages S, occurrences N."""

    names: list[str]  # S
    labels: list[str]  # N: the sentences
    kinds: list[str]  # N
    sense: Tensor  # N
    cosines: Tensor  # S N N
    points: Tensor  # S N 2

    @property
    def late(self) -> int:
        """The index of the late stage; for a recurrent network, the last one."""
        last = len(self.names) - 1
        return max(1, last - LATE) if self.names[-1] == "final" else last

    @property
    def pair(self) -> Tensor:
        """The cosine between the first occurrences in the two senses: S."""
        return self.cosines[:, int((self.sense == 0).int().argmax()), int((self.sense == 1).int().argmax())]

    def means(self) -> tuple[list[float | None], list[float | None]]:
        """The mean cosine at each stage between occurrences in the same sense, and in different ones."""
        same = self.sense[:, None] == self.sense
        apart = ~torch.eye(len(self.sense), dtype=torch.bool)
        means = []
        for chosen in (same & apart, ~same):
            means.append([stage[chosen].mean().item() if chosen.any() else None for stage in self.cosines])
        return means[0], means[1]

    @property
    def gap(self) -> float:
        """How much more similar, at the end, occurrences in the same sense are than those in different ones."""
        within, between = self.means()
        return (within[-1] or 0.0) - (between[-1] or 0.0)

    def row(self, stage: int) -> list[Value]:
        within, between = self.means()
        others = self.cosines[stage] - 2 * torch.eye(len(self.sense))  # exclude each as its own neighbor
        nearest = (self.sense[others.argmax(1)] == self.sense).float().mean().item()
        return [self.pair[stage].item(), within[stage], between[stage], nearest]

    def draw_map(self, name: str, stage: int) -> Points:
        return Points(name, self.labels, self.kinds, [(x, y) for x, y in self.points[stage].tolist()])


def _look(model: LanguageModel, word: str, groups: list[list[str]]) -> Looked:
    texts = groups[0] + groups[1]
    traces = [model.inspect(text) for text in texts]
    for trace in traces:
        trace.positions_of(word)  # raises if the word does not occur
    found = map_senses(traces, word)
    sense = torch.tensor([int(number >= len(groups[0])) for number, _ in found.places])
    return Looked(
        stages(traces[0].config),
        [texts[number] for number, _ in found.places],
        [f"as in: {groups[i][0]}" for i in sense.tolist()],
        sense,
        found.cosines.cpu(),
        found.points.cpu(),
    )


def _learn(
    word: str, groups: list[list[str]], seeds: int, steps: int, watch: Watch
) -> tuple[dict[str, list[Value]], Findings, list[ResultPart]]:
    """A row for each kind and seed, the separation of the senses, and a map for each kind's first seed.

    The first row shows static vectors: the first network's embedding of the word, the same in every sentence.
    """
    rows: dict[str, list[Value]] = {}
    findings: Findings = {}
    maps: list[ResultPart] = []
    for kind in KINDS:
        looked = [_look(learn(kind, steps, seed, watch), word, groups) for seed in range(seeds)]
        rows = rows or {"static vectors": [*looked[0].row(0)[:-1], None]}
        rows |= {f"{kind}, seed {seed}": each.row(-1) for seed, each in enumerate(looked)}
        gaps = [each.gap for each in looked]
        findings[f"{kind}: same sense minus other, lowest over seeds"] = min(gaps)
        findings[f"{kind}: same sense minus other, highest over seeds"] = max(gaps)
        maps.append(looked[0].draw_map(f"map, {kind} trained here", -1))
    return rows, findings, maps


def _found(looked: Looked) -> Findings:
    names, late = looked.names, looked.late
    within, between = looked.means()
    return {
        **{f"cosine between the first two, {names[i]}": looked.pair[i].item() for i in (0, late, -1)},
        f"same sense, {names[late]}": within[late],
        f"other sense, {names[late]}": between[late],
    }


def _draw(looked: Looked) -> list[ResultPart]:
    names, late = looked.names, looked.late
    within, between = looked.means()
    return [
        Lines(
            "block by block",
            "stage",
            "cosine",
            [float(i) for i in range(len(names))],
            {"the first two": looked.pair.tolist(), "same sense": within, "other sense": between},
        ),
        looked.draw_map(f"map, {names[late]}", late),
        Table(
            f"cosines, {names[late]}",
            looked.labels,
            [str(i) for i in range(len(looked.labels))],
            looked.cosines[late].tolist(),
            shaded=True,
        ),
    ]


def _read(given: str, number: int, word: str) -> list[str]:
    if given.strip():
        return [text.strip() for text in given.split("/") if text.strip()]
    if word not in SENSES:
        raise UserError(
            f"{word!r} has no built-in sentences: set `one` and `other`, or use {' or '.join(SENSES)}"
        )
    return list(SENSES[word][number].examples)
