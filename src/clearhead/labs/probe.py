"""Probes: can a plain classifier read something off a site, and more than it could read off noise?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.sites import MATRICES, parse_site
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel

SHUFFLES = 5  # of the labels, for the control
MOST_ITERATIONS = 5000
Place = int | str  # a position, or a word


@dataclass(frozen=True)
class Probe:
    """How well a logistic regression reads labels off a site, each fold judged by a fit to the others.

    `control` is the same with the labels shuffled, `majority` what always saying the commonest gives: only
    what is above both is in the site. `direction` and `bias` are of a fit to everything, in the site's units.
    """

    site: str
    accuracy: float  # mean over the folds
    folds: list[float]
    control: float
    majority: float
    labels: list[Any]
    count: int  # vectors
    direction: Tensor  # labels × features; for two labels one row, towards the second
    bias: Tensor

    def predict(self, vectors: Tensor) -> list[Any]:
        """The likeliest label of each vector of this site: … × features."""
        scores = vectors.detach().float().cpu() @ self.direction.T + self.bias
        best = (scores > 0).long()[..., 0] if len(self.direction) == 1 else scores.argmax(-1)
        return [self.labels[i] for i in best.flatten().tolist()]

    def __str__(self) -> str:
        return (
            f"{self.site}: {self.accuracy:.1%} of {self.count} right; "
            f"with shuffled labels {self.control:.1%}, always the commonest {self.majority:.1%}"
        )


def probe(
    model: LanguageModel,
    texts: Sequence[str],
    labels: Sequence[Any],
    site: str,
    at: Place | Sequence[Place] = -1,
    folds: int = 5,
    seed: int = 0,
) -> Probe:
    """Read labels off a site by logistic regression, cross-validated, with a shuffled-label control.

    A label belongs to a text, and is read at one position of it (`at`: a position, a word, or one for each
    text), or is a list with a label for each token, None where there is none. A text is never on both sides
    of a fold.
    """
    if parse_site(site, model.config).name in MATRICES:
        raise UserError(f"{site} has a column for each position: probe a site that has features")
    texts, labels = _checked(texts, labels)
    found = list(_vectors(model, texts, labels, site, at))
    vectors = np.stack([vector for vector, _, _ in found])
    groups = np.array([group for _, _, group in found])
    kinds = sorted({label for _, label, _ in found}, key=lambda label: (str(type(label)), label))
    numbers = np.array([kinds.index(label) for _, label, _ in found])
    _check_folds(kinds, numbers, groups, folds)
    accuracies = _cross_validate(vectors, numbers, groups, folds, seed)
    shuffled = np.random.default_rng(seed)
    controls = [
        _cross_validate(vectors, shuffled.permutation(numbers), groups, folds, seed) for _ in range(SHUFFLES)
    ]
    direction, bias = _fit(vectors, numbers)
    return Probe(
        site=site,
        accuracy=float(np.mean(accuracies)),
        folds=accuracies,
        control=float(np.mean(controls)),
        majority=float(np.bincount(numbers).max() / len(numbers)),
        labels=kinds,
        count=len(found),
        direction=direction,
        bias=bias,
    )


def _checked(texts: Sequence[str], labels: Sequence[Any]) -> tuple[list[str], list[Any]]:
    if isinstance(texts, str):
        raise UserError("texts is one text: expected a list of them, each with its label")
    texts, labels = list(texts), list(labels)
    if len(texts) != len(labels):
        raise UserError(f"there are {len(texts)} texts and {len(labels)} labels: expected as many of both")
    return texts, labels


def _vectors(
    model: LanguageModel, texts: list[str], labels: list[Any], site: str, at: Place | Sequence[Place]
) -> Iterator[tuple[Any, Hashable, int]]:
    """Each labelled vector, its label, and the number of its text (the same text has the same number)."""
    places = [at] * len(texts) if isinstance(at, int | str) else list(at)
    if len(places) != len(texts):
        raise UserError(f"at has {len(places)} places for {len(texts)} texts: expected one for each")
    numbers: dict[str, int] = {}
    for text, label, place in zip(texts, labels, places, strict=True):
        trace = model.inspect(text)
        number = numbers.setdefault(text, len(numbers))
        labelled = _by_token(trace, label) if isinstance(label, list) else {_find(trace, place): label}
        if labelled:
            rows = trace.read(site, rows=list(labelled)).float().cpu().reshape(len(labelled), -1).numpy()
            for row, each in zip(rows, labelled.values(), strict=True):
                yield row, each, number


def _by_token(trace: Trace, labels: list[Any]) -> dict[int, Any]:
    if len(labels) != len(trace.tokens):
        raise UserError(
            f"a text has {len(labels)} labels and {len(trace.tokens)} tokens ({trace.tokens[:10]}…): "
            "expected one for each, None where there is none"
        )
    return {position: label for position, label in enumerate(labels) if label is not None}


def _find(trace: Trace, place: Place) -> int:
    return trace.position_of(place) if isinstance(place, str) else trace.check_position(place)


def _check_folds(kinds: list[Any], numbers: Any, groups: Any, folds: int) -> None:
    if len(kinds) < 2:
        raise UserError(f"all labels are {kinds}: expected at least two kinds")
    if folds < 2:
        raise UserError(f"folds = {folds}: expected at least 2")
    for number, kind in enumerate(kinds):
        texts = len(set(groups[numbers == number]))
        if texts < folds:
            raise UserError(
                f"label {kind!r} is in {texts} different texts, too few for {folds} folds: "
                "give more texts, or fewer folds"
            )


def _classifier() -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=MOST_ITERATIONS))


def _cross_validate(vectors: Any, numbers: Any, groups: Any, folds: int, seed: int) -> list[float]:
    splits = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    return cross_val_score(_classifier(), vectors, numbers, groups=groups, cv=splits).tolist()


def _fit(vectors: Any, numbers: Any) -> tuple[Tensor, Tensor]:
    """The fit to everything, without the scaler's help: what to multiply a vector by, and what to add."""
    scaler, regression = _classifier().fit(vectors, numbers).named_steps.values()
    direction = regression.coef_ / scaler.scale_
    bias = regression.intercept_ - direction @ scaler.mean_
    return torch.from_numpy(direction).float(), torch.from_numpy(bias).float()
