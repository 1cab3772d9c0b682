"""A training run: from documents to a language model, with one record per step."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from clearhead.files import home
from clearhead.language_model import LanguageModel
from clearhead.networks import make_network
from clearhead.runs.checkpoint import Checkpoint
from clearhead.runs.extension import extend_plan
from clearhead.runs.pace import Pace
from clearhead.runs.plan import Plan, make_plan, share_batch
from clearhead.runs.preparation import (
    PreparedText,
    check_names,
    count_bytes,
    find_opening,
    holds_targets,
    prepare_on_all_ranks,
)
from clearhead.runs.progress import ExponentialAverage, Progress
from clearhead.runs.request import TrainingRequest
from clearhead.runs.setbacks import MOST_SKIPPED, good_loss, has_turned, retreat, turn
from clearhead.runs.start import open_start, plan_start, prepare
from clearhead.runs.summary import describe_training
from clearhead.runs.teachers import open_teachers
from clearhead.runs.threads import ThreadTrial, describe_load, thread_counts, using_threads
from clearhead.runtime.device import free_memory, make_deterministic, pick_device
from clearhead.runtime.process_group import ProcessGroup, full_tensor, local_shard
from clearhead.text.batches import Batches, Blanks
from clearhead.text.corpus import Document
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.held_out import HeldOut
from clearhead.text.start_token import StartToken
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.objective import evaluate
from clearhead.training.trainer import Trainer

# In a timed run, the number of steps is recomputed from their measured duration: first after this fraction of
# them, then each time the second fraction of the remaining steps is done.
FIRST_REPLAN, REPLAN = 0.02, 0.2
VALIDATED_AT_ONCE = 1024  # tokens; more if a training batch has more
SPARED = 4  # a copy of all training tensors stays on the device if this many times its size is free


class Run:
    """Prepares on creation, trains while iterated over; `model` is the current model."""

    def __init__(
        self,
        texts: Sequence[Document],
        request: TrainingRequest,
        cache: Path | None = None,
        plan: Plan | None = None,
        tokenizer: Tokenizer | None = None,
        group: ProcessGroup | None = None,
        began: float | None = None,
        text: PreparedText | None = None,
        held_out: HeldOut | None = None,
        extended_at: int | None = None,
        teachers: Sequence[str | LanguageModel] | None = None,
        is_teacher: bool = False,
    ) -> None:
        """`plan` and `tokenizer` are those of the run to resume; `text` is an already prepared text.

        `began` is when the clock (time.perf_counter) started; default: now. `held_out` is what the run held out of a
        text that has changed since. To extend a finished run, `extended_at` is the number of its steps. `teachers` are
        the models to learn from; default: those that the request names. The clock of a teacher, trained as part of
        another run, starts with its first step.
        """
        self.start = time.perf_counter() if began is None else began
        self.request, self.is_teacher = request, is_teacher
        self.group = group or ProcessGroup()
        self.device = pick_device(request.device)
        if request.deterministic:
            make_deterministic(self.device)
        start = open_start(request)
        taught = open_teachers(request.given_teachers if teachers is None else teachers, self.device)
        networks = () if taught is None else taught.networks
        self.teachers = taught
        if origin := start or taught:
            tokenizer = origin.tokenizer
        again = extended_at is not None and held_out is not None  # choose the share of the text again
        share = None if plan is None or again else plan.share
        earlier = None if origin is None else origin.training
        given = (texts, request, cache or home() / "tokens", tokenizer, share, earlier, held_out)
        text = text or prepare_on_all_ranks(self.group, *given)
        self.text_sha256, self.tokenizer = text.sha256, text.tokenizer
        self.tokens, n_validation, n_vocab = text.tokens, len(text.validation), text.tokenizer.n_vocab
        self.before, self.held_out, self.whole_validation = text.before, held_out, text.validation
        self.earlier: list[dict[str, Any]] = []  # what was trained before the run was extended
        self.prepared = self.seconds
        spent = 0.0 if is_teacher else self.prepared
        left = None if request.minutes is None else 60 * request.minutes - spent
        torch.manual_seed(request.seed)
        if plan is not None and extended_at is not None:
            network = None if start is None else start.network
            numbers = (extended_at, self.tokens, n_validation, self.device, left, network, networks)
            make, plan = partial(extend_plan, request, plan, *numbers), None
        elif plan is None and start is not None:
            make = partial(plan_start, request, start.network, self.tokens, n_validation, self.device, left)
        else:
            known = (self.tokens, n_validation, n_vocab, self.device, left)
            make = partial(make_plan, request, *known, taught, is_teacher)
        plan = self.group.run_on_main(lambda: plan or share_batch(make(), request, self.group.world_size))
        if is_teacher or taught:
            plan = plan.with_few_validations(only_last=is_teacher and self.device.type == "cuda")
        self.plan: Plan = replace(plan, share=text.share)
        validated = text.validation.part(0, plan.validated)
        # A small sample of conversations may contain no reply.
        self.validation = validated if holds_targets(validated) else text.validation
        nothing_else = not self.tokenizer.start_ids and self.tokenizer.end_id is None
        opens = (start is None or nothing_else) and self.plan.config.causal
        self.opening_ids = find_opening(self.tokens, self.tokenizer) if opens else None
        self.planned = self.seconds
        comparable = self.plan.config.causal and self.validation.all_count
        # The length of the text used for validation, to compare runs across tokenizers in bits per byte.
        self.validation_bytes = count_bytes(self.validation, self.tokenizer) if comparable else None
        # Batches before the network: a text too short for the context is rejected before weights are allocated.
        mask = self.tokenizer.mask_id
        self.blanks = Blanks(mask) if request.bidirectional and mask is not None else None
        n_context, rows = self.plan.context, self.plan.recipe.batch_size
        token = StartToken.of(self.tokenizer, self.tokens)
        batches = Batches(self.tokens, n_context, rows, request.seed, self.blanks, token)
        torch.manual_seed(request.seed)
        if start is None:
            network = make_network(self.plan.config).to(self.device)
        else:
            network = prepare(start.network, self.plan.config, request.lora).to(self.device)
        self.model = LanguageModel(network, self.tokenizer)
        self.trainer = Trainer(network, batches, self.plan.recipe, self.group, request.sharded, networks)
        self.pace = Pace(self.plan.steps_per_validation)
        self.threads = self._thread_trial()
        self.losses: list[float] = []  # validation losses, newest last
        self.losses_before = 0  # how many were measured before the run was extended
        self.validated_at = 0  # step of the newest one
        self.marks = 0  # validations due so far, see `_passes_mark`
        self.notes = check_names(texts) if request.start is None else []  # messages for the user
        if self.threads and (note := describe_load(self.threads.counts[0])):
            self.notes.append(note)
        first, steps = self.plan.recipe.first_step, self.plan.recipe.steps
        self.replan_at = first + FIRST_REPLAN * (steps - first)  # steps done
        self.trained = 0.0  # seconds spent in steps
        self.validating = 0.0  # seconds spent in validation
        self.resumed_at = 0.0  # seconds on its clock, from earlier processes, when it was resumed
        self.ending = 0.0  # seconds that the caller needs after the last step, to save the results
        self.smoothed = ExponentialAverage()  # the displayed loss
        self.skipped = 0  # consecutive steps with non-finite values
        self.retreats = 0
        self.at_most: int | None = None  # steps, once the validation loss has risen
        # The state to return to after too many non-finite steps; in a timed run, the one with the lowest validation
        # loss, to which the run also returns once that loss rises.
        self.good = self._good()

    @property
    def seconds(self) -> float:
        """Seconds since the start of the run."""
        return time.perf_counter() - self.start

    def _thread_trial(self) -> ThreadTrial | None:
        """Only for a timed run: with a given number of steps, the result must not depend on the machine's load."""
        counts = thread_counts()
        if self.device.type != "cpu" or not self.request.minutes or self.group.world_size > 1:
            return None
        planned = self.plan.threads
        return ThreadTrial(planned if planned in counts else counts[0], counts)

    def __iter__(self) -> Iterator[Progress]:
        if self.threads is None:
            yield from self._train()
            return
        with using_threads(self.threads.count):
            yield from self._train()

    def _train(self) -> Iterator[Progress]:
        loss, pace = self.smoothed, ExponentialAverage()
        self.trainer.set_up()
        if self.is_teacher and self.trainer.step == 0:
            self.start = time.perf_counter()
        while self.trainer.step < self.trainer.recipe.steps:
            began, validated, asking = self.seconds, self.validating, self.trainer.asking
            self.model.network.train()
            record = self.trainer.take_step()
            self.model.network.eval()  # observers see no dropout, and consume none of its random numbers
            self.trained += record.seconds
            if self.threads:
                self.threads.note(record.seconds)
            if self.request.minutes and record.step >= self.replan_at:
                self.set_steps(record.step)
                if self.threads:
                    self.threads.begin()
            steps = self.trainer.recipe.steps
            # Before the state is copied, or returned to.
            shown = loss.mean if record.skipped else loss(record.loss)
            validation = self.validate() if self._passes_mark(record.step) else None
            broke = record.skipped or (validation is not None and not math.isfinite(validation))
            self.skipped = self.skipped + 1 if broke else 0
            if self.skipped >= MOST_SKIPPED or (validation is not None and broke):
                retreat(self, record.step)
            elif validation is not None and has_turned(self, validation):
                turn(self, validation)
            elif validation is not None and (not self.request.minutes or validation <= good_loss(self)):
                self.good = self._good()
            yield Progress(record, steps, shown, pace(record.seconds), self.seconds, validation)
            asked = self.trainer.asking - asking
            self.pace.note(self.seconds - began - asked, self.validating - validated)
        self.finish()

    def checkpoint(self) -> Checkpoint:
        """The complete current state; for sharded tensors, this rank's shard."""
        own = {name: local_shard(tensor).detach() for name, tensor in self.trainer.tensors().items()}
        copies = {name: tensor.cpu().clone() for name, tensor in own.items()}
        return Checkpoint(self.trainer.step, copies, self.state())

    def _good(self) -> Checkpoint:
        """The state to return to if training diverges: on the device if there is room, since transfers are slow."""
        own = self.trainer.tensors().values()
        if free_memory(self.device) < SPARED * sum(local_shard(tensor).nbytes for tensor in own):
            return self.checkpoint()
        tensors = {
            name: local_shard(tensor).detach().clone() for name, tensor in self.trainer.tensors().items()
        }
        return Checkpoint(self.trainer.step, tensors, self.state())

    def state(self) -> dict[str, Any]:
        """The state of a checkpoint besides its tensors."""
        return {
            "losses": list(self.losses),
            "losses_before": self.losses_before,
            "validated_at": self.validated_at,
            "seconds": self.seconds,
            "trained": self.trained,
            "steps": self.trainer.recipe.steps,
            "slowdown": self.trainer.slowdown,
            "smoothed": [self.smoothed.mean, self.smoothed.count],
            "skipped": self.skipped,
            "retreats": self.retreats,
            "at_most": self.at_most,
        }

    def full_model(self) -> LanguageModel:
        """The current model; a sharded one is gathered on the CPU of rank 0.

        All ranks must call this; only rank 0 gets the whole model.
        """
        if not self.request.sharded:
            return self.model
        network = make_network(self.plan.config).eval()
        with torch.no_grad():
            own = dict(network.named_parameters())
            for name, parameter in self.model.network.named_parameters():
                own[name].copy_(full_tensor(parameter))
        return LanguageModel(network, self.tokenizer, self.model.training)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Resume as if the run had never stopped."""
        state = checkpoint.state
        self.trainer.restore(checkpoint.step, checkpoint.tensors)
        self.losses, self.validated_at = list(state["losses"]), state["validated_at"]
        self.trainer.slowdown, self.retreats = state["slowdown"], state["retreats"]
        self.skipped = state.get("skipped", 0)
        self.at_most = state.get("at_most")
        self.smoothed.mean, self.smoothed.count = state.get("smoothed", (0.0, 0))
        self.losses_before = state.get("losses_before", 0)
        # An extension starts with its own clock and number of steps.
        if state.get("finished") and checkpoint.step == self.plan.recipe.first_step:
            self.losses_before = len(self.losses)
        else:
            self.trained, self.replan_at = state["trained"], checkpoint.step
            self.start = time.perf_counter() - state["seconds"]
            self.trainer.recipe = replace(self.trainer.recipe, steps=state["steps"])
            self.plan = replace(self.plan, recipe=self.trainer.recipe)
        self.marks = self.count_marks(checkpoint.step)
        self.good = self._good()

    def find_held_out(self) -> HeldOut | None:
        """What the run holds out of its text; None if the validation text is in separate files."""
        if self.request.validation is not None and not isinstance(self.request.validation, float):
            return None
        n_bytes = count_bytes(self.whole_validation, self.tokenizer)
        return HeldOut.of(self.tokens, self.whole_validation, n_bytes / len(self.whole_validation))

    @property
    def is_best(self) -> bool:
        """Whether the current weights have the lowest validation loss so far."""
        return bool(self.losses) and self.losses[-1] <= min(self.losses) and self.last_loss() is not None

    def finish(self) -> None:
        """Record in the model how it was trained; called at the end, or when training is stopped."""
        self.model.network.eval()
        self.model.training = describe_training(self)

    def validate(self) -> float:
        """The loss over the validation text."""
        began = time.perf_counter()
        before = int(self.tokens[len(self.tokens) - 1 :][0]) if self.before is None else self.before
        rows = self.plan.recipe.batch_size  # with which a timed run was planned
        if not self.request.minutes:
            rows = max(rows, VALIDATED_AT_ONCE // self.plan.context)
        start = StartToken.of(self.tokenizer, self.validation)
        windows = windows_for_evaluation(self.validation, self.plan.context, rows, before, self.blanks, start)
        loss = evaluate(self.model.network, windows, self.plan.recipe.bfloat16, self.group)
        self.losses.append(loss)
        self.validated_at = self.trainer.step
        self.validating += time.perf_counter() - began
        return loss

    def last_loss(self) -> float | None:
        """The validation loss of the current weights, or None if it was not measured."""
        known = self.losses and self.validated_at == self.trainer.step and math.isfinite(self.losses[-1])
        return self.losses[-1] if known else None

    def _passes_mark(self, step: int) -> bool:
        """Whether a validation is due.

        Marks are evenly spaced, the last one at the end; each is passed only once, even though replanning moves them.
        """
        before, self.marks = self.marks, max(self.marks, self.count_marks(step))
        return self.marks > before or step >= self.trainer.recipe.steps

    def count_marks(self, step: int) -> int:
        """The number of marks up to and including a step."""
        first, steps = self.plan.recipe.first_step, self.trainer.recipe.steps
        return max(0, step - first) * self.plan.validations // (steps - first)

    def set_steps(self, done: int) -> None:
        """Set the number of steps to what fits into the time left after the remaining validations and saving."""
        assert self.request.minutes is not None
        left = 60 * self.request.minutes - self.seconds - self.ending - self.trainer.asking_left()
        done_now = done - self.plan.recipe.first_step  # without those before an extension
        steps = left / (self.pace.seconds_per_step() or self.trained / done_now)
        before_last = self.plan.validations - 1 - self.marks
        steps -= max(0, before_last) * self.pace.around_validation + self.pace.validation
        last = self.group.broadcast(done + max(0, round(steps)))
        if self.at_most is not None:
            last = min(last, self.at_most)
        self.trainer.recipe = replace(self.trainer.recipe, steps=last)
        self.plan = replace(self.plan, recipe=self.trainer.recipe)
        self.replan_at = done + REPLAN * (last - done)
