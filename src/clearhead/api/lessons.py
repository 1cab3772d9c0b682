"""One training step on a text: losses, gradients, updates, and what the step changes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clearhead.api.base import Id, Ids, Index, ModelName, Name, RequestModel, Text, WireModel
from clearhead.api.inspection import Slice

MAX_TERMS = 100
MAX_SNAPSHOTS = 200
MAX_STEPS = 20
NumberOwner = Annotated[
    Name, Field(description="A site listed by /api/trace, or a weight.", examples=["block.0.head.0.W_Q"])
]
TermCount = Annotated[int, Field(ge=1, le=MAX_TERMS)]


class LessonRequest(RequestModel):
    """A text to compute one training step on; the model does not change."""

    model: ModelName
    text: Text | Ids = Field(description="A text, or token ids.", examples=["The duck crossed the road"])
    number: Annotated[int, Field(ge=1, le=MAX_STEPS)] = Field(
        1, description="Which of several steps on this text to explain, counted from 1."
    )


class LessonTarget(WireModel):
    """The token that a position is to predict."""

    id: int
    text: str
    probability: float | None
    loss: float | None = Field(description="-ln of the probability.")


class LessonResponse(WireModel):
    """The losses of a text, and the size of the gradient at each stage of the model."""

    ids: list[int]
    tokens: list[str]
    targets: list[LessonTarget | None] = Field(description="One per position; null where there is none.")
    n_targets: int
    loss: float | None = Field(description="The mean over the targets.")
    gradient_norm: float | None = Field(description="The norm over all weights together, before clipping.")
    clip: float = Field(description="The largest gradient norm that is not clipped.")
    optimizer: str
    learning_rate: float = Field(description="The learning rate of the matrices.")
    stages: list[str] = Field(description="Sites of the residual stream, in the order of the forward pass.")
    norms: list[list[float | None]] = Field(
        description="Tokens × stages: the norm of the gradient with respect to each token's vector."
    )


class GradientRequest(LessonRequest, Slice):
    """The gradient of the loss with respect to a site or a weight."""

    name: NumberOwner


class LogitErrorsRequest(LessonRequest):
    """The logits of one position with the largest errors."""

    position: Index = Field(-1, description="Counted from 0, or from the end if negative.")
    count: TermCount = 10


class LogitError(WireModel):
    id: int
    text: str
    probability: float | None
    is_target: bool
    error: float | None = Field(description="The probability, minus 1 if the token is the target.")
    gradient: float | None = Field(description="The error, divided by the number of targets.")


class LogitErrorsResponse(WireModel):
    errors: list[LogitError] = Field(description="The largest first; empty if the position has no target.")
    n_others: int = Field(description="How many tokens are not listed.")
    others: float | None = Field(description="The sum of their errors.")


class NumberPlace(WireModel):
    """One number in a site or weight; a vector has no column."""

    name: str
    row: int
    column: int | None


class ChainRequest(LessonRequest):
    """One number whose gradient is explained by the chain rule."""

    name: NumberOwner
    row: Id
    column: Id | None = None
    count: TermCount = Field(10, description="How many of the largest terms to return.")


class ChainTermValue(NumberPlace):
    """A number that is computed from the explained one; the term is its gradient times its derivative."""

    gradient: float | None
    derivative: float | None
    value: float | None = Field(description="The product.")
    factor: NumberPlace | None = Field(
        description="The number that the derivative is equal to, if there is one."
    )


class ChainResponse(NumberPlace):
    """The gradient of one number as a sum of terms."""

    value: float | None
    gradient: float | None
    kind: str = Field(description="The operation that uses the number next.")
    terms: list[ChainTermValue] = Field(description="The largest first.")
    n_others: int = Field(description="How many terms are not listed.")
    others: float | None = Field(description="The sum of the terms that are not listed.")
    probability: float | None = Field(description="For a logit or a probability: the token's probability.")
    is_target: bool = Field(description="For a logit or a probability: whether the token is the target.")


class UpdateRequest(LessonRequest):
    """One number in a weight."""

    name: NumberOwner
    row: Id
    column: Id | None = None
    count: TermCount = Field(
        8, description="How many tokens to return, starting with the largest contributions."
    )


class UpdateTerm(WireModel):
    name: str
    value: float | None


class TokenContribution(WireModel):
    """What a token adds to the gradient."""

    position: int
    value: float | None


class TokenContributions(WireModel):
    """What each token adds to the gradient; the parts sum to it."""

    parts: list[TokenContribution] = Field(description="The largest first.")
    n_others: int = Field(description="How many tokens are not listed.")
    others: float | None = Field(description="The sum of what they add.")


class UpdateResponse(WireModel):
    """What the step does to one number in a weight, and the tokens that contribute to its gradient."""

    before: float | None
    gradient: float | None
    terms: list[UpdateTerm] = Field(description="They sum to the change.")
    after: float | None
    cause: str | None = Field(
        description="The term that decides whether the number goes up or down; null if it stays the same."
    )
    learning_rate: float
    weight_decay: float
    epsilon: float | None = Field(
        description="The constant that AdamW adds to the square root by which it divides."
    )
    positions: TokenContributions = Field(
        description="What the use of the weight at each position adds to the gradient."
    )
    targets: TokenContributions = Field(
        description="What the loss of each position's target adds to the gradient."
    )


class StepRequest(LessonRequest):
    """The steps are taken on a copy of the model, all on the same text."""

    other: Text | None = Field(None, description="Another text, whose loss is compared as well.")
    count: TermCount = 8
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] = Field(1, description="How many steps to take.")


class LossBeforeAfter(WireModel):
    before: float | None
    after: float | None


class LossesOfStep(WireModel):
    """The losses before and after one step."""

    loss: LossBeforeAfter
    other: LossBeforeAfter | None


class WeightMove(WireModel):
    name: str
    loss_change: float | None = Field(
        description="Gradient × change, summed over the numbers of the weight and over the steps: its part of the "
        "expected change in the loss."
    )
    change: float | None = Field(description="The norm of the change.")
    relative: float | None = Field(description="The same, divided by the norm of the weight before the step.")


class ProbabilityMove(WireModel):
    position: int
    id: int
    text: str
    is_target: bool
    before: float | None
    after: float | None


class StepResponse(WireModel):
    """What the steps change."""

    loss: LossBeforeAfter = Field(description="Before the first and after the last step.")
    losses: list[LossBeforeAfter] = Field(description="The same for each position.")
    other: LossBeforeAfter | None
    steps: list[LossesOfStep] = Field(description="One per step.")
    expected: float | None = Field(
        description="The change in the loss to first order: gradient × change, summed over all weights and steps."
    )
    weights: list[WeightMove] = Field(description="The largest expected fall in the loss first.")
    probabilities: list[ProbabilityMove] = Field(description="The largest change first.")


class HeadMovesRequest(RequestModel):
    """A head of a training run's model."""

    run: Name = Field(description="A run listed by /api/runs.")
    block: Id
    head: Id


class HeadMove(WireModel):
    """How far the weights of a head moved between two snapshots."""

    start: int = Field(description="The step of the earlier snapshot.")
    end: int
    weights: dict[str, float | None] = Field(
        description="By weight: the norm of the change, divided by the norm of the weight before the change."
    )


class HeadMovesResponse(WireModel):
    moves: list[HeadMove]


class RunBatchRequest(HeadMovesRequest):
    """A step of a training run: the one after a snapshot."""

    step: Annotated[int, Field(ge=1, lt=2**31, description="Counted from 1.")]
    count: Annotated[int, Field(ge=1, le=20, description="How many texts to return.")] = 4


class BatchRow(WireModel):
    """A text of the batch."""

    text: str
    loss: float | None = Field(description="The mean over its targets.")
    gradient: float | None = Field(
        description="The norm of what the text adds to the gradient of the head's weights."
    )


class RunBatchResponse(WireModel):
    """The batch of one step of a run, recomputed."""

    step: int
    loss: float | None
    rows: list[BatchRow] = Field(description="The texts that move the head most, in descending order.")
    n_rows: int
