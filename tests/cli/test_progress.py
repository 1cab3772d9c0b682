"""The progress line: it fits the terminal, and shows no total that changes."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from clearhead.cli import progress as shown
from clearhead.cli import train
from clearhead.cli.train import _suggest_use, show_outcome
from clearhead.runs.progress import Progress
from clearhead.runs.progress_line import describe_progress
from clearhead.training.trainer import StepRecord


def make(step, steps, seconds, validation=None, tokens_per_step=65536):
    record = StepRecord(step, 3.4567, 1.0, 1.0, 0.03, step * tokens_per_step, 0.1)
    return Progress(record, steps, 3.4567, 0.1, seconds, validation)


@pytest.mark.parametrize("minutes", [None, 0.5, 3.0, 600.0, 100_000.0])
@pytest.mark.parametrize("step", [1, 950, 12_345, 123_456, 1_234_567])
def test_line_fits_80_columns(minutes, step):
    progress, validated = make(step, 2 * step, 5_999.0, 3.4567), make(max(1, step - 7), step, 5_990.0, 3.4567)
    for last in (None, validated, progress):
        line = describe_progress(progress, last, minutes, 80)
        assert len(line) <= 80, line
        assert "loss 3.457" in line
        assert last is None or "validation 3.4567" in line


def test_timed_run_shows_the_time_instead_of_a_changing_total():
    lines = [
        describe_progress(make(step, total, 35.0), None, 3.0, 80) for step, total in ((10, 90), (11, 120))
    ]
    assert lines[0] == "0:35 of 3:00   step 10   loss 3.457   655,360 tokens/s"
    assert "120" not in lines[1]
    assert describe_progress(make(10, 90, 35.0), None, None, 80).startswith("step 10/90   loss 3.457   ")


def test_long_lines_are_wrapped_on_a_terminal_only(monkeypatch):
    text = "word " * 40
    for terminal, longest in ((True, 60), (False, 210)):
        console = Console(file=io.StringIO(), force_terminal=terminal, width=60, soft_wrap=True)
        monkeypatch.setattr(shown, "err", console)
        shown.print_wrapped("note       ", text.strip(), " " * 11)
        lines = console.file.getvalue().rstrip("\n").split("\n")
        assert max(map(len, lines)) == pytest.approx(longest, abs=5)
        assert all(re.match(r"note {7}|\ {11}\w", line) for line in lines)


@pytest.mark.parametrize(
    ("minutes", "seconds", "teacher_steps", "words"),
    [
        (None, 5.0, None, ""),
        (3.0, 0.0, None, ", done in about 3:00"),
        (3.0, 100.0, None, ", done in about 1:20"),
        (3.0, 179.5, None, ", no time left: it ends after a few steps"),
        (1.0, 20.0, 0, ", done in about 1:00"),
        (1.0, 20.0, 7, ", done in about 0:40"),
    ],
)
def test_plan_shows_the_time_left(minutes, seconds, teacher_steps, words):
    """Teachers, and processes that were killed, have taken some of it."""
    run = SimpleNamespace(request=SimpleNamespace(minutes=minutes), seconds=seconds)
    run.is_teacher, run.trainer = teacher_steps is not None, SimpleNamespace(step=teacher_steps)
    assert shown._time_left(run) == words


def run_with(causal=True, conversations=False, template=None):
    return SimpleNamespace(
        plan=SimpleNamespace(config=SimpleNamespace(causal=causal)),
        tokens=SimpleNamespace(all_count=not conversations),
        tokenizer=SimpleNamespace(config={"chat_template": template}),
    )


def test_settings_in_the_summary_are_shown_as_options(monkeypatch):
    console = Console(file=io.StringIO(), width=200, markup=False)
    monkeypatch.setattr(train, "err", console)
    run = run_with()
    run.model, run.notes = SimpleNamespace(training={}), []
    message = "train a single model (`teachers=0`)"
    outcome = SimpleNamespace(run=run, folder="m", error=None, finished=True, phase=None, summary=[message])
    show_outcome(outcome)
    assert console.file.getvalue().splitlines()[0] == "train a single model (--teachers 0)"


def test_chat_is_suggested_after_training_on_conversations():
    assert _suggest_use(run_with(), "m") == "generate m"
    assert _suggest_use(run_with(template="…"), "m") == "generate m, or clearhead chat m"
    assert _suggest_use(run_with(template="…", conversations=True), "m") == "chat m"
    assert _suggest_use(run_with(causal=False), "m").startswith("fill m")
