"""What a report on a model contains."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from clearhead.evaluation.baselines import Baseline
from clearhead.evaluation.calibration import Calibration
from clearhead.evaluation.copied_text import CopiedText
from clearhead.evaluation.overfitting import TrainingEvidence
from clearhead.evaluation.run_summary import RunSummary
from clearhead.evaluation.scores import Scores
from clearhead.evaluation.token_losses import FrequencyLoss, TokenLosses
from clearhead.labs.heads import HeadScores


@dataclass(frozen=True)
class Surprise:
    """A token to which the model gave a low probability, in its context."""

    before: str
    token: str
    after: str
    loss: float
    expected: str  # the most likely token
    confidence: float


@dataclass(frozen=True)
class WrittenSample:
    """A text that the model wrote without a prompt."""

    temperature: float
    text: str


@dataclass(frozen=True)
class ModelReport:
    """A figure that is None could not be measured: the run's text is not known, or the model is not from a run."""

    model: str
    shape: str
    parameters: int
    text: str
    bytes: int  # in the text
    losses: TokenLosses
    bits_per_byte: float
    compressed: dict[str, float]
    baselines: list[Baseline]
    calibration: Calibration
    by_frequency: list[FrequencyLoss]
    counted_in_training: bool  # whether frequencies are those in the training text, or in the text itself
    surprises: list[Surprise]
    passage: list[tuple[str, float]]  # the tokens around the largest surprise, with their losses
    copied: CopiedText | None
    copied_by_people: CopiedText | None
    longest_copy: str  # the longest copied passage that the model wrote
    evidence: TrainingEvidence | None
    run: RunSummary | None
    samples: list[WrittenSample]
    scores: Scores | None = field(repr=False)
    heads: HeadScores | None = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        copied = {
            who: {**asdict(each), "share": each.share}
            for who, each in (("model", self.copied), ("people", self.copied_by_people))
            if each is not None
        }
        return {
            "model": self.model,
            "shape": self.shape,
            "parameters": self.parameters,
            "text": self.text,
            "bytes": self.bytes,
            "tokens": len(self.losses.ids),
            "loss": self.losses.loss,
            "bits_per_byte": self.bits_per_byte,
            "compressed": self.compressed,
            "baselines": [asdict(each) for each in self.baselines],
            "by_position": [list(each) for each in self.losses.by_position()],
            "by_frequency": [asdict(each) for each in self.by_frequency],
            "calibration": {
                "accuracy": self.calibration.accuracy,
                "expected_error": self.calibration.expected_error,
                "bins": [asdict(each) for each in self.calibration.bins],
            },
            "surprises": [asdict(each) for each in self.surprises],
            "copied": copied or None,
            "longest_copy": self.longest_copy,
            **self._training(),
            "run": None if self.run is None else asdict(self.run),
            "samples": [asdict(each) for each in self.samples],
            "minimal_pairs": None
            if self.scores is None
            else [group.to_dict() for group in self.scores.groups],
            "heads": None if self.heads is None else _heads(self.heads),
        }

    def _training(self) -> dict[str, Any]:
        evidence = self.evidence
        if evidence is None:
            return {"overfits": None, "evidence": None, "advice": []}
        figures = {"rise": evidence.rise, "gap": evidence.gap, "fall": evidence.fall}
        advice = [asdict(each) for each in evidence.advice()]
        return {"overfits": evidence.overfits, "evidence": {**asdict(evidence), **figures}, "advice": advice}


def _heads(found: HeadScores) -> dict[str, Any]:
    """Per role, each head's score (blocks × heads) and that of uniform attention."""
    return {
        role: {"scores": scores.tolist(), "uniform": found.chance.get(role)}
        for role, scores in found.kinds.items()
    }
