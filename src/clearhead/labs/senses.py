"""A word in two senses: its static vector is one, its contextual vectors part."""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.senses import map_senses, stages
from clearhead.labs.lab import Lines, Points, Result, Table
from clearhead.language_model import LanguageModel

# By word, sentences of one sense and of the other; the lecture's come first.
KNOWN = {
    "bats": (
        "I'm scared of bats / At night the cave is full of bats / The vet takes care of owls and bats"
        " / In the dark fly moths and bats",
        "I swing bats / The players broke their bats / The team bought gloves and bats"
        " / Baseball is played with balls and bats",
    ),
    "bank": (
        "He sat by the river bank / The boat lay on the muddy bank / We fished from the grassy bank"
        " / Trees grow along the stream and its bank",
        "She put money in the bank / He took a loan from the bank / I opened an account at the bank"
        " / The thieves robbed the bank",
    ),
}
LATE = 3  # blocks before the end: by then the words before have been taken in


def run(word: str, one: str, other: str, model: LanguageModel) -> Result:
    """At every stage the cosines between all occurrences, and near the end a map of them."""
    groups = [_read(given, number, word) for number, given in enumerate((one, other))]
    texts = groups[0] + groups[1]
    traces = [model.inspect(text) for text in texts]
    for trace in traces:
        trace.positions_of(word)  # or it says that there is none
    found = map_senses(traces, word)
    sense = torch.tensor([int(number >= len(groups[0])) for number, _ in found.places])
    first, second = int((sense == 0).int().argmax()), int((sense == 1).int().argmax())
    names, pair = stages(traces[0].config), found.cosines[:, first, second]
    # Of a recurrent network the last stage is also the one before the end.
    late = max(1, len(names) - 1 - LATE) if names[-1] == "final" else len(names) - 1
    labels = [texts[number] for number, _ in found.places]
    within, between = _means(found.cosines, sense)
    points = [(x, y) for x, y in found.points[late].tolist()]
    kinds = [f"as in: {group[0]}" for group in groups]
    return Result(
        lab="senses",
        settings={"word": word, "one": " / ".join(groups[0]), "other": " / ".join(groups[1])},
        found={
            **{f"cosine of the first two, {names[i]}": pair[i].item() for i in (0, late, -1)},
            f"same sense, {names[late]}": within[late],
            f"other sense, {names[late]}": between[late],
        },
        parts=[
            Lines(
                "block by block",
                "stage",
                "cosine",
                [float(i) for i in range(len(names))],
                {"the first two": pair.tolist(), "same sense": within, "other sense": between},
            ),
            Points(f"map, {names[late]}", labels, [kinds[i] for i in sense.tolist()], points),
            Table(
                f"cosines, {names[late]}",
                labels,
                [str(i) for i in range(len(labels))],
                found.cosines[late].tolist(),
                shaded=True,
            ),
        ],
    )


def _read(given: str, number: int, word: str) -> list[str]:
    if not given.strip():
        if word not in KNOWN:
            raise UserError(
                f"{word!r} comes without sentences: give one and other, or take {' or '.join(KNOWN)}"
            )
        given = KNOWN[word][number]
    return [text.strip() for text in given.split("/") if text.strip()]


def _means(cosines: Tensor, sense: Tensor) -> tuple[list[float | None], list[float | None]]:
    """The mean cosine at each stage of two occurrences in one sense, and of two in different ones."""
    same = sense[:, None] == sense
    apart = ~torch.eye(len(sense), dtype=torch.bool)
    means = []
    for chosen in (same & apart, ~same):
        means.append([stage[chosen].mean().item() if chosen.any() else None for stage in cosines.cpu()])
    return means[0], means[1]
