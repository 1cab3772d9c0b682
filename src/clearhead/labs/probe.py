"""Probes: can a linear classifier predict a property from a site better than chance?"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.extras import require
from clearhead.inspect.base_trace import BaseTrace
from clearhead.inspect.sites import MATRICES, parse_site
from clearhead.language_model import LanguageModel
from clearhead.model.config import Config
from clearhead.summary_table import TableCell, html_table

SHUFFLES = 5  # of the labels, for the control
MOST_ITERATIONS = 5000
# Below this many numbers in all vectors, a fit consists of many tiny products. Several threads would mostly
# wait for each other, and for a long time on a busy machine.
SMALL = 2**20
Place = int | str  # a position, or a word


@dataclass(frozen=True, repr=False)
class Probe:
    """How well logistic regression predicts labels from a site, cross-validated.

    `control` is the accuracy with shuffled labels, `majority` the share of the most common label: only accuracy
    above both shows that the site holds the information. `direction` and `bias` belong to a fit to all data, in
    the site's units.
    """

    site: str
    accuracy: float  # mean over the folds
    folds: list[float]
    control: float
    majority: float
    labels: list[Any]
    count: int  # vectors
    direction: Tensor  # labels × features; for two labels one row, toward the second
    bias: Tensor

    def predict(self, vectors: Tensor) -> list[Any]:
        """The most likely label of each vector of this site: … × features."""
        scores = vectors.detach().float().cpu() @ self.direction.T + self.bias
        best = (scores > 0).long()[..., 0] if len(self.direction) == 1 else scores.argmax(-1)
        return [self.labels[i] for i in best.flatten().tolist()]

    def __repr__(self) -> str:
        return f"Probe({self})"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, TableCell]] = [
            ("accuracy", f"{self.accuracy:.1%}"),
            ("with shuffled labels", f"{self.control:.1%}"),
            ("majority", f"{self.majority:.1%}"),
            ("vectors", self.count),
        ]
        return html_table((), rows, f"Probe of {self.site}")

    def __str__(self) -> str:
        return (
            f"{self.site}: accuracy {self.accuracy:.1%} over {self.count} vectors; "
            f"with shuffled labels {self.control:.1%}, majority {self.majority:.1%}"
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
    """Predict labels from a site by logistic regression, cross-validated, with a shuffled-label control.

    A label belongs to a text and one position in it (`at`: a position, a word, or one per text), or is a list
    with a label per token; None means no label. A text is never in both the training and the test part of a fold.
    """
    require("probes", "a probe")
    from threadpoolctl import threadpool_limits

    _check_settings(model, site, folds, seed)
    texts, labels = _checked(texts, labels)
    found = list(_vectors(model, texts, labels, site, at))
    if not found:
        raise UserError("all labels are None: expected at least two different ones")
    vectors = np.stack([vector for vector, _, _ in found])
    groups = np.array([group for _, _, group in found])
    kinds = _kinds([label for _, label, _ in found])
    places = {kind: i for i, kind in enumerate(kinds)}
    numbers = np.array([places[label] for _, label, _ in found])
    _check_folds(kinds, numbers, groups, folds)
    shuffled = np.random.default_rng(seed)
    with threadpool_limits(1) if vectors.size < SMALL else nullcontext():
        accuracies = _cross_validate(vectors, numbers, groups, folds, seed)
        controls = [
            _cross_validate(vectors, shuffled.permutation(numbers), groups, folds, seed)
            for _ in range(SHUFFLES)
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


def _check_settings(model: Any, site: Any, folds: Any, seed: Any) -> None:
    if not isinstance(model, LanguageModel):
        raise UserError(
            f"a {type(model).__name__} cannot be probed: expected a model that train or load returned"
        )
    if not isinstance(site, str):
        raise UserError(f"site = {site!r}: expected a name such as block.0.input")
    if isinstance(model.config, Config) and parse_site(site, model.config).name in MATRICES:
        raise UserError(f"{site} has a column for each position: probe a site with features")
    if not isinstance(folds, Integral) or int(folds) < 2:
        raise UserError(f"folds = {folds!r}: expected at least 2")
    if not isinstance(seed, Integral) or not 0 <= int(seed) < 2**32:
        raise UserError(f"seed = {seed!r}: expected 0 to {2**32 - 1}")


def _checked(texts: Sequence[str], labels: Sequence[Any]) -> tuple[list[str], list[Any]]:
    texts, labels = _plain(texts), _plain(labels)
    for name, given in (("texts", texts), ("labels", labels)):
        if isinstance(given, str):
            raise UserError(f"{name} is a single text: expected a list, with as many texts as labels")
        if not hasattr(given, "__iter__"):
            raise UserError(
                f"{name} has type {type(given).__name__}: expected a list, with as many texts as labels"
            )
    texts, labels = list(texts), [_plain(label) for label in labels]
    if not texts:
        raise UserError("no texts were given: expected some for each label")
    if len(texts) != len(labels):
        raise UserError(
            f"there are {len(texts)} texts and {len(labels)} labels: expected the same number of each"
        )
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise UserError(f"texts[{i}] has type {type(text).__name__}: expected a string")
    return texts, labels


def _plain(value: Any) -> Any:
    """Convert arrays and tensors to lists of Python values."""
    return value.tolist() if isinstance(value, Tensor | np.ndarray | np.generic) else value


def _kinds(labels: list[Any]) -> list[Any]:
    """Each label once, sorted if possible."""
    try:
        kinds = set(labels)
    except TypeError:
        odd = next(label for label in labels if not isinstance(label, Hashable))
        raise UserError(
            f"a label has type {type(odd).__name__}: expected a string, a number or similar"
        ) from None
    try:
        return sorted(kinds, key=lambda label: (str(type(label)), label))
    except TypeError:
        return sorted(kinds, key=lambda label: (str(type(label)), str(label)))


def _vectors(
    model: LanguageModel, texts: list[str], labels: list[Any], site: str, at: Place | Sequence[Place]
) -> Iterator[tuple[Any, Hashable, int]]:
    """Each labeled vector, its label, and the index of its text (equal texts share an index)."""
    places = _places(at, len(texts))
    if len(places) != len(texts):
        raise UserError(f"at has {len(places)} places for {len(texts)} texts: expected one for each")
    numbers: dict[str, int] = {}
    for text, label, place in zip(texts, labels, places, strict=True):
        if label is None:
            continue
        trace = model.inspect(text)
        number = numbers.setdefault(text, len(numbers))
        labeled = _by_token(trace, label) if isinstance(label, list) else {_find(trace, place): label}
        if labeled:
            rows = trace.read(site, rows=list(labeled)).float().cpu().reshape(len(labeled), -1).numpy()
            for row, each in zip(rows, labeled.values(), strict=True):
                yield row, each, number


def _places(at: Any, count: int) -> list[Place]:
    at = _plain(at)
    places = [at] * count if isinstance(at, int | str) else list(at) if hasattr(at, "__iter__") else [None]
    for place in map(_plain, places):
        if not isinstance(place, int | str):
            raise UserError(f"at = {at!r}: expected a position, a word, or a list with one for each text")
    return [_plain(place) for place in places]


def _by_token(trace: BaseTrace, labels: list[Any]) -> dict[int, Any]:
    if len(labels) != len(trace.tokens):
        raise UserError(
            f"a text has {len(labels)} labels and {len(trace.tokens)} tokens ({trace.tokens[:10]}…): "
            "expected one per token, or None"
        )
    return {position: _plain(label) for position, label in enumerate(labels) if label is not None}


def _find(trace: BaseTrace, place: Place) -> int:
    return trace.position_of(place) if isinstance(place, str) else trace.check_position(place)


def _check_folds(kinds: list[Any], numbers: Any, groups: Any, folds: int) -> None:
    if len(kinds) < 2:
        raise UserError(f"all labels are {kinds}: expected at least two different ones")
    for number, kind in enumerate(kinds):
        texts = len(set(groups[numbers == number]))
        if texts < folds:
            raise UserError(
                f"label {kind!r} occurs in {texts} different texts, too few for {folds} folds: "
                "provide more texts, or fewer folds"
            )


def _classifier() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=MOST_ITERATIONS))


def _cross_validate(vectors: Any, numbers: Any, groups: Any, folds: int, seed: int) -> list[float]:
    from sklearn.model_selection import StratifiedGroupKFold, cross_val_score

    splits = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    return cross_val_score(_classifier(), vectors, numbers, groups=groups, cv=splits).tolist()


def _fit(vectors: Any, numbers: Any) -> tuple[Tensor, Tensor]:
    """The fit to all data, with the scaler folded in: weights and bias."""
    scaler, regression = _classifier().fit(vectors, numbers).named_steps.values()
    direction = regression.coef_ / scaler.scale_
    bias = regression.intercept_ - direction @ scaler.mean_
    return torch.from_numpy(direction).float(), torch.from_numpy(bias).float()
