"""Progress of a run on stderr: a live line on a terminal, plain lines elsewhere; Ctrl-C stops the run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from textwrap import wrap
from types import FrameType
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from clearhead.cli.console import clock, err, plural, printable
from clearhead.cli.signals import RECEIVED, TERMINATING
from clearhead.runs.observer import Observer
from clearhead.runs.progress_line import describe_progress

if TYPE_CHECKING:
    from clearhead.networks import LearnerConfig
    from clearhead.runs.counting import CountedText
    from clearhead.runs.preparation import PreparedText
    from clearhead.runs.progress import Progress
    from clearhead.runs.reports import Reports
    from clearhead.runs.request import TrainingRequest
    from clearhead.runs.run import Run
    from clearhead.training.recipe import Recipe

Show = Callable[[str, bool], object]  # a line, and whether to print it even without a terminal

PLAIN_LINES = 10


def show_plan(run: Run) -> None:
    """Print every setting that was chosen, before training starts."""
    from clearhead.training.lora import count_parameters

    config, recipe, request = run.plan.config, run.plan.recipe, run.request
    n, m = len(run.tokens), len(run.validation)
    precision = "bfloat16" if recipe.bfloat16 else "float32"
    rows = {
        "text": f"{n:,} tokens to train on, {m:,} to validate on",
        "tokenizer": f"{run.tokenizer.kind}, {run.tokenizer.n_vocab:,} tokens",
        "model": f"{_shape(config, request)}, "
        f"width {config.d_model}, context {config.n_context}: {config.n_parameter:,} parameters"
        + (f", {count_parameters(run.model.network):,} more in trainable adapters" if request.lora else ""),
        "training": f"{_steps(recipe, request)} of {recipe.batch_size}×{run.plan.context} tokens "
        f"({_times(run.plan.epochs(n))} epochs), "
        f"{recipe.name} ({recipe.optimizer}, learning rate {recipe.main_rate:g}, "
        f"weight decay {recipe.weight_decay:g}), dropout {config.dropout:g}, seed {recipe.seed}",
        "machine": f"{run.device.type}, {precision}"
        + (f", {run.group.world_size} processes" if run.group.world_size > 1 else "")
        + _time_left(run),
    }
    notes = [("note", warning) for warning in run.plan.warnings(n, request.start is not None)]
    for name, row in [*rows.items(), *notes]:
        print_wrapped(f"{name:<10} ", row, " " * 11)


def _steps(recipe: Recipe, request: TrainingRequest) -> str:
    """The number of steps, which is an estimate if the time is given."""
    about = "" if request.minutes is None else "about "
    more = f" ({recipe.steps - recipe.first_step:,} more)" if recipe.first_step else ""
    return f"{about}{plural(recipe.steps, 'step')}{more}"


def _time_left(run: Run) -> str:
    """How long a timed run will still take; one that was killed may have used up its time."""
    if run.request.minutes is None:
        return ""
    begins = run.is_teacher and not run.trainer.step  # the clock of a teacher starts with its first step
    left = 60 * run.request.minutes - (0.0 if begins else run.seconds)
    return f", done in about {clock(left)}" if left >= 1 else ", no time left: it ends after a few steps"


def _times(epochs: float) -> str:
    if epochs < 0.1:
        return f"{epochs:.1g}"
    return f"{epochs:.1f}" if epochs < 100 else f"{epochs:,.0f}"


def _shape(config: LearnerConfig, request: TrainingRequest) -> str:
    from clearhead.model.config import Config

    blocks = plural(config.n_block, "block")
    if not isinstance(config, Config):
        return f"{request.start or config.kind}: {blocks}"
    bidirectional = "" if config.causal else ", bidirectional"
    shared = f" ({config.n_kv_head} key-value)" if config.n_kv_head != config.n_head else ""
    return f"{request.start or request.preset}{bidirectional}: {blocks} of {plural(config.n_head, 'head')}{shared}"


class TerminalObserver(Observer):
    """Shows a run on stderr; Ctrl-C, SIGTERM and SIGUSR1 stop it after the current step."""

    def __init__(self) -> None:
        self.validated: Progress | None = None
        self.interrupted: list[int] = []
        self.live = ExitStack()
        self.show: Show = lambda *_: None
        self.phase = ""

    def noted(self, message: str) -> None:
        err.print(f"clearhead: {message}")

    def entered(self, phase: str) -> None:
        err.print(f"{'phase':<10} {phase}")
        self.phase, self.validated = phase, None

    def started(self, run: Run, reports: Reports) -> None:
        if run.teachers is not None and not run.is_teacher:
            self.entered(f"student of {plural(len(run.teachers.networks), 'teacher')}")
        show_plan(run)
        for reporter in reports.reporters:
            err.print(f"{'reports':<10} {reporter.place}")
        print_notes(run)
        if run.trainer.step:
            done = run.trainer.step
            verb = "extending the run" if done == run.plan.recipe.first_step else "resuming"
            err.print(f"{verb} after step {done:,}")

    @contextmanager
    def training(self) -> Iterator[None]:
        with interrupts() as self.interrupted, self.live:
            self.show = self.live.enter_context(live_line())
            yield

    def stepped(self, run: Run, progress: Progress) -> bool:
        print_notes(run)
        self.validated = self.validated if progress.validation is None else progress
        phase = f"{self.phase}   " if self.phase else ""
        line = describe_progress(progress, self.validated, run.request.minutes, err.width - len(phase))
        self.show(phase + line, _is_plain_line(progress))
        if progress.sample is not None:
            print_wrapped("  │ ", printable(" ".join(progress.sample.split())), "  │ ", style="dim")
        return not run.group.any(bool(self.interrupted))

    def saving(self) -> None:
        self.live.close()
        hold()

    def counting(self, text: PreparedText) -> None:
        n, m = len(text.tokens), len(text.validation)
        err.print(f"{'text':<10} {n:,} tokens to count, {m:,} to validate on")
        err.print(f"{'tokenizer':<10} {text.tokenizer.kind}, {text.tokenizer.n_vocab:,} tokens")

    def counted(self, counted: CountedText) -> None:
        from clearhead.classics.ngram_config import NGramConfig

        config = counted.model.config
        assert isinstance(config, NGramConfig)
        err.print(f"{'model':<10} {config.n_ngram:,} n-grams of up to {config.order} tokens")
        err.print(f"{'validation':<10} loss {counted.validation_loss:.4f} after {counted.seconds:.1f} s")


def watch(name: str, run: Run) -> None:
    """Train an unsaved run to the end, showing progress."""
    from clearhead.runs.summary import summarize

    validated = None
    for warning in run.plan.warnings(len(run.tokens)):
        err.print(f"{name:<12} {warning}")
    with live_line() as show:
        for progress in run:
            print_notes(run)
            validated = validated if progress.validation is None else progress
            line = describe_progress(progress, validated, run.request.minutes, err.width - 13)
            show(f"{name:<12} {line}", _is_plain_line(progress))
    for line in summarize(run):
        err.print(f"{name:<12} {line}")


def print_notes(run: Run) -> None:
    """Print the run's new notes."""
    while run.notes:
        err.print(f"clearhead: {run.notes.pop(0)}")


def print_wrapped(first: str, text: str, rest: str, style: str | None = None) -> None:
    """Print a line; on a terminal, broken between words, with `rest` before all lines but the first."""
    if err.is_terminal:
        lines = wrap(
            text, max(20, err.width), initial_indent=first, subsequent_indent=rest, break_on_hyphens=False
        )
        text = "\n".join(lines or [first])
    else:
        text = first + text
    err.print(text, style=style)


def _is_plain_line(progress: Progress) -> bool:
    step, steps = progress.record.step, progress.steps
    tenth = step * PLAIN_LINES // steps > (step - 1) * PLAIN_LINES // steps
    return step == 1 or tenth or progress.validation is not None


@contextmanager
def live_line() -> Iterator[Show]:
    """One line updated in place; without a terminal, only selected lines, printed one by one."""
    if not err.is_terminal:
        yield lambda text, plain: err.print(text) if plain else None
        return
    with Live(console=err, refresh_per_second=8, transient=False) as live:
        yield lambda text, _: live.update(Text(text, no_wrap=True, overflow="ellipsis"))


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """A list that receives Ctrl-C, SIGTERM and SIGUSR1, so that they do not interrupt the enclosed work.

    It starts with the signals that were swallowed before. A second Ctrl-C stops at once, unless `hold` is called for
    work that must not be interrupted.
    """
    came = [*RECEIVED]

    def note(number: int, _: FrameType | None) -> None:
        came.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, *TERMINATING)}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def hold() -> None:
    """Ignore signals until `interrupts` exits: a model is being saved."""
    for number in (signal.SIGINT, *TERMINATING):
        signal.signal(number, signal.SIG_IGN)
