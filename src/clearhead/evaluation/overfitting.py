"""Overfitting, and what would help a run most next: rules based on its losses.

- The run overfits if its last validation loss is more than 1% above the lowest one, or if its loss on the text that it
  was trained on is more than 10% below that on held-out text.
- If it overfits, more text and more regularization help; if the validation loss rose, so does the model in `best/`.
- If SmolLM2 needs more than 10% fewer bits per byte for the same text, fine-tuning it helps.
- If the run does not overfit, and its validation loss fell by more than 1% over the last quarter of the steps, a longer
  run helps.
- If the run does not overfit, and it has read more than 16 tokens per parameter, a larger model helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

RISE = 0.01
GAP = 0.1
FALL = 0.01
BETTER = 0.1
TOKENS_PER_PARAMETER = 16  # a model of the best size for a compute budget has read 5 to 16


@dataclass(frozen=True)
class Advice:
    """What would help, and the figures that support it."""

    what: str
    because: str


@dataclass(frozen=True)
class TrainingEvidence:
    """The losses of a run. None where a figure is not known."""

    validation: Sequence[tuple[int, float]]  # step and loss
    tokens_read: int
    training_tokens: int
    parameters: int
    held_out: float | None = None  # loss of the saved model on held-out text
    trained_on: float | None = None  # loss on a sample of the training text
    bits_per_byte: float | None = None  # of the saved model on held-out text
    pretrained: float | None = None  # bits per byte of SmolLM2 on the same text

    @property
    def rise(self) -> float | None:
        """How far the last validation loss is above the lowest one, as a fraction of the lowest."""
        losses = [loss for _, loss in self.validation]
        return losses[-1] / min(losses) - 1 if losses else None

    @property
    def gap(self) -> float | None:
        """How far the loss on the training text is below that on held-out text, as a fraction of the latter."""
        if self.held_out is None or self.trained_on is None:
            return None
        return 1 - self.trained_on / self.held_out

    @property
    def fall(self) -> float | None:
        """How far the validation loss fell over the last quarter of the steps, as a fraction."""
        if not self.validation:
            return None
        last, loss = self.validation[-1]
        earlier = [each for step, each in self.validation if step <= 0.75 * last]
        return 1 - loss / earlier[-1] if earlier else None

    @property
    def overfits(self) -> bool:
        return (self.rise or 0) > RISE or (self.gap or 0) > GAP

    @property
    def reason(self) -> str:
        """The losses that show whether the model overfits; empty if they are not known."""
        found = [self._rise()] if (self.rise or 0) > RISE else []
        if self.gap is not None:
            found.append(
                f"its loss is {self.trained_on:.4f} on its training text and {self.held_out:.4f} on held-out text"
            )
        return "; ".join(found)

    def advice(self) -> list[Advice]:
        """What would help; if the model overfits, remedies for that come first. Each item has its own evidence."""
        epochs = self.tokens_read / self.training_tokens
        ratio = self.tokens_read / self.parameters
        if self.overfits:
            read = f"it has read its {self.training_tokens:,} tokens {epochs:.1f} times"
            found = [Advice("more text", read)]
            if (self.rise or 0) > RISE:
                found.append(Advice("the model in best/, or fewer steps", self._rise()))
            found.append(Advice("more regularization (--dropout), or a smaller model", self._excess()))
            return [*found, *self._fine_tuning()]
        found = self._fine_tuning()
        if self.fall is not None and self.fall > FALL:
            found.append(
                Advice(
                    "more training time",
                    f"its validation loss fell by {self.fall:.1%} in the last quarter of the steps",
                )
            )
        if ratio > TOKENS_PER_PARAMETER:
            found.append(
                Advice("a larger model", f"it has read {ratio:.1f} tokens per parameter; 5 to 16 are best")
            )
        return found

    def _fine_tuning(self) -> list[Advice]:
        if self.bits_per_byte is None or self.pretrained is None:
            return []
        if self.pretrained >= (1 - BETTER) * self.bits_per_byte:
            return []
        because = (
            f"before any fine-tuning, SmolLM2 needs {self.pretrained:.4f} bits per byte for the "
            f"held-out part, and this model {self.bits_per_byte:.4f}"
        )
        return [Advice("fine-tuning SmolLM2 (--from smollm2)", because)]

    def _excess(self) -> str:
        """The evidence that the model fits its training text more closely than held-out text."""
        if self.gap is not None and self.gap > 0:
            return f"its loss on its training text is {self.gap:.0%} lower than on held-out text"
        return f"it has {self.parameters:,} parameters for {self.training_tokens:,} tokens"

    def _rise(self) -> str:
        step, lowest = min(self.validation, key=lambda each: each[1])
        return f"its validation loss was {lowest:.4f} at step {step:,} and {self.validation[-1][1]:.4f} at the end"
