"""A report on a model: how well it predicts a text, what it writes, and what would help."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from clearhead.api.base import MAX_CHARACTERS, ModelName, RequestModel, WireModel
from clearhead.evaluation.model_report import ModelReport
from clearhead.finite import finite

TextKind = Literal["held out", "new stories", "given"]
Point = list[float | None]


class ReportRequest(RequestModel):
    """A model and, optionally, the text to measure it on."""

    model: ModelName
    text: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_CHARACTERS,
        description="A text that the model was not trained on. By default, what its run held out or, for a built-in "
        "model, new stories.",
    )


class ReportProgress(WireModel):
    doing: str = Field(description="Such as “counting n-grams”; empty if no report is being made.")


class ReportBaseline(WireModel):
    name: str
    bits_per_byte: float | None
    about: str
    own: bool = Field(description="Whether it was trained on the model's own training text.")


class ReportFrequency(WireModel):
    """The tokens that occur `least` to `most` times in the training text."""

    least: int
    most: int | None
    tokens: int
    loss: float | None


class ReportBin(WireModel):
    low: float
    high: float
    predictions: int
    confidence: float
    accuracy: float


class ReportCalibration(WireModel):
    accuracy: float
    expected_error: float
    bins: list[ReportBin]


class ReportSurprise(WireModel):
    before: str
    token: str
    after: str
    loss: float | None
    expected: str
    confidence: float


class ReportCopies(WireModel):
    n: int = Field(description="The minimum number of tokens in a passage that counts as copied.")
    tokens: int
    copied: int
    longest: int
    share: float


class ReportCopied(WireModel):
    model: ReportCopies
    people: ReportCopies


class ReportEvidence(WireModel):
    validation: list[Point] = Field(description="Step and loss.")
    tokens_read: int
    training_tokens: int
    parameters: int
    rise: float | None
    gap: float | None
    fall: float | None
    bits_per_byte: float | None
    pretrained: float | None = Field(description="Bits per byte of SmolLM2 on the same text.")


class ReportAdvice(WireModel):
    what: str
    because: str


class ReportRun(WireModel):
    settings: dict[str, str | int | float | bool | None]
    training: list[Point] = Field(description="Step and smoothed loss.")
    validation: list[Point]


class ReportSample(WireModel):
    temperature: float
    text: str


class ReportPairs(WireModel):
    kind: str
    category: str | None = Field(description="Null for all categories together.")
    items: int
    accuracy: float
    interval: list[float]
    accuracy_per_byte: float
    chance: float | None
    bits_per_byte: float | None


class ReportHeads(WireModel):
    scores: list[Point] = Field(description="By block and head.")
    uniform: float | None = Field(description="The score of uniform attention.")


class ReportResponse(WireModel):
    """The figures of `clearhead report`. Those that could not be measured are null."""

    model: str
    shape: str
    parameters: int
    text: str
    text_kind: TextKind
    bytes: int
    tokens: int
    loss: float | None
    bits_per_byte: float | None
    compressed: dict[str, float | None]
    baselines: list[ReportBaseline]
    by_position: list[Point] = Field(description="The mean number of tokens read, and the mean loss.")
    by_frequency: list[ReportFrequency]
    counted_in_training: bool = Field(description="Whether tokens were counted in the training text.")
    calibration: ReportCalibration
    surprises: list[ReportSurprise]
    passage: list[tuple[str, float | None]] = Field(
        description="The tokens around the largest surprise, and their losses."
    )
    copied: ReportCopied | None
    longest_copy: str
    overfits: bool | None
    evidence: ReportEvidence | None
    advice: list[ReportAdvice]
    run: ReportRun | None
    samples: list[ReportSample]
    minimal_pairs: list[ReportPairs] | None
    heads: dict[str, ReportHeads] | None

    @classmethod
    def of(cls, report: ModelReport, text_kind: TextKind) -> ReportResponse:
        found: dict[str, Any] = finite(report.to_dict())
        return cls.model_validate(
            {
                **found,
                "text_kind": text_kind,
                "counted_in_training": report.counted_in_training,
                "passage": [(piece, finite(loss)) for piece, loss in report.passage],
            }
        )
