"""A training run: from documents to a language model, one record a step."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from clearhead.errors import UserError
from clearhead.files import home
from clearhead.language_model import LanguageModel
from clearhead.model.machine import pick_device
from clearhead.model.transformer import Transformer
from clearhead.runs.checkpoint import Checkpoint
from clearhead.runs.plan import Plan, choose_tokenizer, make_plan
from clearhead.runs.request import Request
from clearhead.runs.start import open_start, plan_start, prepare
from clearhead.text.batches import Batches, Blanks, windows_for_evaluation
from clearhead.text.conversations import are_conversations, tokenize_conversations
from clearhead.text.corpus import Document, documents, measure
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens, tokenize
from clearhead.training.objective import count_targets, evaluate
from clearhead.training.trainer import BROKEN, Record, Trainer

LARGEST_VALIDATION = 200_000  # bytes of the text's end, unless told
LARGEST_START_VALIDATION = 20_000  # of one to go on from, which is large and reads slowly
LARGEST_TOKENIZER_TEXT = 32_000_000  # bytes that a tokenizer is trained on
# Where in a timed run the number of steps is set anew from the time they really take.
REPLAN_AT = (0.05, 0.3, 0.6, 0.85)
LEAST_RISE = 0.02  # of the validation loss, in nats, that is worth a word
MOST_SKIPPED = 3  # steps in a row that break, before the run goes back
MOST_RETREATS = 3


@dataclass(frozen=True)
class Progress:
    """Where a run stands after a step."""

    record: Record
    steps: int  # in all
    loss: float  # of the last steps, smoothed
    seconds_a_step: float  # likewise
    seconds: float  # since the run began
    validation: float | None  # the loss over the whole validation text, where it was taken

    @property
    def tokens_a_second(self) -> float:
        return self.record.tokens / self.record.step / self.seconds_a_step

    def metrics(self) -> dict[str, int | float | None]:
        """What is kept of the step, the same in every run like this one. None is what was not finite."""
        record = self.record
        numbers: dict[str, int | float] = {
            "loss": record.loss,
            "gradient_norm": record.gradient_norm,
            "rate": record.rate,
            "tokens": record.tokens,
        }
        if self.validation is not None:
            numbers["validation"] = self.validation
        finite = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
        return {"step": record.step, **finite}


class Smooth:
    """A running mean that forgets: of the first few numbers their mean, later of about the last twenty."""

    def __init__(self) -> None:
        self.mean, self.count = 0.0, 0

    def __call__(self, number: float) -> float:
        self.count += 1
        self.mean += (number - self.mean) / min(self.count, 20)
        return self.mean


class Run:
    """Prepared when made; trains as it is iterated over; `model` is the model as it stands."""

    def __init__(
        self,
        texts: Sequence[Document],
        request: Request,
        cache: Path | None = None,
        plan: Plan | None = None,
        tokenizer: Tokenizer | None = None,
    ) -> None:
        """`plan` and `tokenizer` are those of the run that this one goes on with."""
        self.start = time.perf_counter()
        self.request = request
        self.device = pick_device(request.device)
        cache = cache or home() / "tokens"
        self.text_sha256, n_bytes = measure(texts)
        start = open_start(request)
        if start is not None:
            tokenizer = start.tokenizer
        self.tokenizer = tokenizer or _train_tokenizer(texts, request, n_bytes)
        self.tokens, self.validation = _split(texts, request, self.tokenizer, cache, n_bytes)
        left = None if request.minutes is None else 60 * request.minutes - self.seconds
        torch.manual_seed(request.seed)
        if plan is None and start is not None:
            config = start.network.config
            plan = plan_start(request, config, self.tokens, len(self.validation), self.device, left)
        self.plan: Plan = plan or make_plan(
            request, self.tokens, len(self.validation), self.tokenizer.n_vocab, self.device, left
        )
        # Before the network: a text too short for the context must not cost the memory of its positions.
        mask = self.tokenizer.mask_id
        self.blanks = Blanks(mask) if request.both_ways and mask is not None else None
        n_context, rows = self.plan.context, self.plan.recipe.batch_size
        batches = Batches(self.tokens, n_context, rows, seed=request.seed, blanks=self.blanks)
        torch.manual_seed(request.seed)
        if start is None:
            network = Transformer(self.plan.config).to(self.device)
        else:
            network = prepare(start.network, self.plan.config, request.lora).to(self.device)
        self.model = LanguageModel(network, self.tokenizer)
        self.trainer = Trainer(network, batches, self.plan.recipe)
        self.seconds_a_validation = 0.0
        self.losses: list[float] = []  # validation losses, the last one the newest
        self.validated_at = 0  # the step that it was taken after
        self.notes: list[str] = []  # what the user should be told
        self.replan_at = list(REPLAN_AT)
        self.trained = 0.0  # seconds spent in steps
        self.skipped = 0  # steps in a row whose numbers were not finite
        self.retreats = 0
        self.good = self.checkpoint()  # where to go back to after too many of them

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.perf_counter() - self.start

    def __iter__(self) -> Iterator[Progress]:
        loss, pace = Smooth(), Smooth()
        while self.trainer.step < self.trainer.recipe.steps:
            self.model.network.train()
            record = self.trainer.take_step()
            self.model.network.eval()  # whoever looks on sees no dropout, and draws none of its numbers
            self.trained += record.seconds
            steps = self.trainer.recipe.steps
            if self.replan_at and self.request.minutes and record.step >= self.replan_at[0] * steps:
                self.replan_at.pop(0)
                self._set_steps(record.step, self.trained / record.step)
            validation = self.validate() if self._is_due(record.step) else None
            broke = record.skipped or (validation is not None and not math.isfinite(validation))
            self.skipped = self.skipped + 1 if broke else 0
            if self.skipped >= MOST_SKIPPED or (validation is not None and broke):
                self._retreat(record.step)
            elif validation is not None:
                self.good = self.checkpoint()
            shown = loss.mean if record.skipped else loss(record.loss)
            steps = self.trainer.recipe.steps
            yield Progress(record, steps, shown, pace(record.seconds), self.seconds, validation)
        self.finish()

    def checkpoint(self) -> Checkpoint:
        """Everything that going on depends on, as it stands."""
        tensors = {name: tensor.detach().cpu().clone() for name, tensor in self.trainer.tensors().items()}
        state = {
            "losses": list(self.losses),
            "validated_at": self.validated_at,
            "seconds": self.seconds,
            "trained": self.trained,
            "replan_at": list(self.replan_at),
            "steps": self.trainer.recipe.steps,
            "slowdown": self.trainer.slowdown,
            "skipped": self.skipped,
            "retreats": self.retreats,
        }
        return Checkpoint(self.trainer.step, tensors, state)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on as if the run had never stopped."""
        state = checkpoint.state
        self.trainer.restore(checkpoint.step, checkpoint.tensors)
        self.losses, self.validated_at = list(state["losses"]), state["validated_at"]
        self.trained, self.replan_at = state["trained"], list(state["replan_at"])
        self.start = time.perf_counter() - state["seconds"]
        self.trainer.slowdown, self.retreats = state["slowdown"], state["retreats"]
        self.skipped = state.get("skipped", 0)
        self.trainer.recipe = replace(self.trainer.recipe, steps=state["steps"])
        self.plan = replace(self.plan, recipe=self.trainer.recipe)
        self.good = checkpoint

    @property
    def is_best(self) -> bool:
        """Whether the weights as they are have the lowest validation loss so far."""
        return bool(self.losses) and self.losses[-1] <= min(self.losses) and self._last_loss() is not None

    def _retreat(self, step: int) -> None:
        """Back to the last state whose numbers were finite, with a lower rate; or, after several, give up."""
        if self.retreats >= MOST_RETREATS:
            raise UserError(f"training broke at step {step}, for the {self.retreats + 1}th time: {BROKEN}")
        retreats, slowdown = self.retreats + 1, self.trainer.slowdown / 2
        seconds, steps = self.seconds, self.trainer.recipe.steps
        self.restore(self.good)
        self.start = time.perf_counter() - seconds
        self.retreats, self.trainer.slowdown, self.skipped = retreats, slowdown, 0
        self.trainer.recipe = replace(self.trainer.recipe, steps=steps)
        self.notes.append(
            f"step {step}: the numbers were no longer finite; back to step {self.trainer.step}, "
            f"with {slowdown:g} of the learning rate"
        )

    def finish(self) -> None:
        """Write down in the model how it was trained; called at the end, or where training was stopped."""
        self.model.network.eval()
        self.model.training = self.describe()

    def validate(self) -> float:
        """The loss over the whole validation text."""
        began = time.perf_counter()
        before = int(self.tokens[len(self.tokens) - 1 :][0])
        windows = windows_for_evaluation(
            self.validation, self.plan.context, self.plan.recipe.batch_size, before, self.blanks
        )
        loss = evaluate(self.model.network, windows, self.plan.recipe.bfloat16)
        self.losses.append(loss)
        self.validated_at = self.trainer.step
        self.seconds_a_validation = time.perf_counter() - began
        return loss

    def describe(self) -> dict[str, Any]:
        return {
            **self.plan.to_json(),
            **self._origin(),
            "steps_done": self.trainer.step,
            "text_sha256": self.text_sha256,
            "tokens": len(self.tokens),
            "validation_tokens": len(self.validation),
            "validation_loss": self._last_loss(),
        }

    def hindsight(self, best: Path | None = None) -> list[str]:
        """What one should know when it is over; `best` is where the model with the lowest loss is kept."""
        if not self.losses or self.losses[-1] <= min(self.losses) + LEAST_RISE:
            return []
        kept = f"; the best one is kept in {best}" if best is not None else ""
        return [
            f"the validation loss was lower before ({min(self.losses):.4f}) and rose to "
            f"{self.losses[-1]:.4f}: the model began to learn the text by heart; train it for less time, or "
            f"on more text{kept}"
        ]

    def _origin(self) -> dict[str, Any]:
        """What the network was before its first step."""
        request = self.request
        if request.start is None:
            return {"preset": request.preset}
        return {"start": request.start, "start_sha256": request.start_sha256, "lora": request.lora}

    def _last_loss(self) -> float | None:
        """Of the weights as they are; none where training was stopped after it was last taken."""
        known = self.losses and self.validated_at == self.trainer.step and math.isfinite(self.losses[-1])
        return self.losses[-1] if known else None

    def _is_due(self, step: int) -> bool:
        """At equal distances, and at the end."""
        steps, validations = self.trainer.recipe.steps, self.plan.validations
        return step * validations // steps > (step - 1) * validations // steps

    def _set_steps(self, done: int, seconds_a_step: float) -> None:
        """As many more as fit into the time left, less what the coming validations take."""
        assert self.request.minutes is not None
        coming = max(1, self.plan.validations - len(self.losses))
        left = 60 * self.request.minutes - self.seconds - coming * self.seconds_a_validation
        steps = done + max(1, round(left / seconds_a_step))
        self.trainer.recipe = replace(self.trainer.recipe, steps=steps)
        self.plan = replace(self.plan, recipe=self.trainer.recipe)


def save_somewhere(model: LanguageModel, folder: Path) -> tuple[Path, UserError | None]:
    """Save, and where that is refused, in a temporary folder: what was trained is not to be lost."""
    try:
        model.save(folder, overwrite=True)
    except UserError as error:
        kept = Path(tempfile.mkdtemp(prefix="clearhead-"))
        model.save(kept)
        return kept, error
    return folder, None


def with_time(request: Request, minutes: float = 3) -> Request:
    """Three minutes, for one who said nothing of time."""
    return replace(request, minutes=minutes) if request.minutes is None and request.steps is None else request


def _train_tokenizer(texts: Sequence[Document], request: Request, n_bytes: int) -> Tokenizer:
    kind, n_vocab = choose_tokenizer(request, n_bytes)
    pieces = (piece for document in texts for piece in document.pieces())
    if kind != "bpe":
        return Tokenizer.train(kind, pieces, n_vocab, mask=request.both_ways)
    # Not from the validation text; and of a long text the beginning is enough.
    most = min((1 - _fraction(request, n_bytes)) * n_bytes, LARGEST_TOKENIZER_TEXT)
    return Tokenizer.train(kind, _first_bytes(pieces, most), n_vocab, mask=request.both_ways)


def _first_bytes(pieces: Iterable[str], n_bytes: float) -> Iterator[str]:
    """The pieces that lie within the first so many bytes, the last one cut."""
    for piece in pieces:
        encoded = piece.encode()
        yield encoded[: int(n_bytes)].decode(errors="ignore")
        n_bytes -= len(encoded)
        if n_bytes <= 0:
            return


def _fraction(request: Request, n_bytes: int) -> float:
    """How much of the text's end is for validation."""
    if isinstance(request.validation, float):
        return request.validation
    if request.validation is not None:
        return 0.0
    largest = LARGEST_VALIDATION if request.start is None else LARGEST_START_VALIDATION
    return min(0.1, largest / n_bytes)


def _split(
    texts: Sequence[Document], request: Request, tokenizer: Tokenizer, cache: Path, n_bytes: int
) -> tuple[Tokens, Tokens]:
    """Tokens to train on, and to validate on."""
    tokens = _tokenize(texts, request, tokenizer, cache)
    if request.validation is None or isinstance(request.validation, float):
        training, validation = tokens.split(_fraction(request, n_bytes))
    else:
        training = tokens
        given = request.validation
        files = [given] if isinstance(given, str | Path) else given
        validation = _tokenize(list(documents(files)), request, tokenizer, cache)
        if validation.all_count:
            # Texts begin and end with the end token; of the second's, the first is the one that goes before.
            validation = validation.part(1)
    if not len(validation):
        raise UserError("no text is left for validation: give more text, or a larger --validation")
    for part, what in ((training, "to train on"), (validation, "for validation")):
        if not part.all_count and not count_targets(part.targets[:]):
            raise UserError(f"no reply is left {what}: give more conversations, or another --validation")
    return training, validation


def _tokenize(texts: Sequence[Document], request: Request, tokenizer: Tokenizer, cache: Path) -> Tokens:
    """To a model that is gone on from, .jsonl files are conversations."""
    if request.start is not None and are_conversations(texts):
        return tokenize_conversations(texts, tokenizer)
    return tokenize(texts, tokenizer, cache)
