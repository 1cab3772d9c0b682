"""Finished runs that are extended: schedule, exact resume, held-out text, and what they report."""

import json
import math
import os
import signal

import numpy as np
import pytest

import clearhead as ch
from clearhead.errors import UserError
from clearhead.runs.extension import PEAK, complete_request
from clearhead.runs.held_out import read_held_out
from clearhead.runs.listing import describe_run
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.run_metrics import read_metrics
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.summary import summarize
from clearhead.text.corpus import Document
from clearhead.text.stories import stories
from clearhead.training.recipe import Recipe

SMALL = {
    "blocks": 1,
    "width": 32,
    "heads": 1,
    "context": 32,
    "batch": 4,
    "tokenizer": "byte",
    "device": "cpu",
}
FILES = ("metrics.jsonl", "model.safetensors", "clearhead.json", "config.json", "tokenizer.json", "run.json")


@pytest.fixture(scope="module")
def lines():
    told = stories()
    return [next(told).text for _ in range(60)]


def open_run(folder, texts, resume=True, extend_again=False, **settings):
    settings = settings if resume else {**SMALL, **settings}
    request = TrainingRequest(**{"device": "cpu", **settings})
    keeping = {"checkpoint_every": 5, "extend": resume, "extend_again": extend_again}
    return SavedRun.open(folder, texts, request, resume, cache=folder.parent / "cache", **keeping)


def train(saved_run, until=None):
    with saved_run:
        for progress in saved_run:
            if progress.record.step == until:
                return saved_run.run
        saved_run.run.model.save(saved_run.folder.path, overwrite=True)
        saved_run.finish()
    return saved_run.run


def one_text(lines):
    return [Document.of("a.txt", "\n".join(lines))]


def test_extension_continues_steps_metrics_and_optimizer_state(lines, tmp_path):
    texts = one_text(lines)
    train(open_run(tmp_path / "run", texts, resume=False, steps=20))
    extended = open_run(tmp_path / "run", texts, steps=30)
    assert (extended.run.trainer.step, extended.run.trainer.recipe.steps) == (20, 50)
    states = [
        value for state in extended.run.trainer.optimizers[0].state.values() for value in state.values()
    ]
    assert all(float(value.abs().max()) > 0 for value in states)
    listed = describe_run(tmp_path / "run")
    assert (listed.steps_done, listed.steps_planned, listed.finished) == (20, 50, False)
    run = train(extended)
    records = read_metrics(tmp_path / "run")
    assert [record["step"] for record in records] == list(range(1, 51))
    batch = 4 * 32
    assert [record["tokens"] for record in records] == [batch * step for step in range(1, 51)]
    assert [record["step"] for record in records[20:] if "validation" in record] == [26, 32, 38, 44, 50]
    listed = describe_run(tmp_path / "run")
    assert (listed.steps_done, listed.steps_planned, listed.finished) == (50, 50, True)
    training = ch.load(tmp_path / "run", "cpu").training
    assert training["steps_done"] == training["recipe"]["steps"] == 50
    assert training["earlier"] == [{"steps": 20, "minutes": None}]
    assert run.losses[-1] < run.losses[4]


def test_learning_rate_is_warmed_up_and_decayed_again(lines, tmp_path):
    texts = one_text(lines)
    train(open_run(tmp_path / "run", texts, resume=False, steps=20))
    train(open_run(tmp_path / "run", texts, steps=40))
    rates = [record["learning_rate"] for record in read_metrics(tmp_path / "run")]
    first, second = rates[:20], rates[20:]
    assert first[-1] == pytest.approx(max(first) / 19, rel=0.1)
    assert second[0] < second[1] < second[2] < second[3]  # rising over a tenth of the steps
    assert second[3:] == sorted(second[3:], reverse=True)
    assert second[-1] < max(second) / 20


@pytest.mark.parametrize("optimizer", ["muon", pytest.param("adamw", marks=pytest.mark.slow)])
def test_interrupted_extension_is_exact(optimizer, lines, tmp_path):
    texts = one_text(lines)
    for name, stops in (("whole", [None]), ("broken", [11, 16, 17, None])):
        train(open_run(tmp_path / name, texts, resume=False, steps=10, optimizer=optimizer))
        for stop in stops:
            train(open_run(tmp_path / name, texts, steps=12), stop)
    for name in FILES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes(), name
    assert [path.name for path in (tmp_path / "broken" / "checkpoints").iterdir()] == ["step-000000022"]


def test_extended_by_steps_twice(lines, tmp_path):
    texts = one_text(lines)
    train(open_run(tmp_path / "run", texts, resume=False, steps=10))
    for total in (15, 20):
        run = train(open_run(tmp_path / "run", texts, steps=5))
        assert run.trainer.step == total
        assert run.plan.recipe.matrix_rate == pytest.approx(PEAK * Recipe(1, 1).matrix_rate)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["earlier"] == [
        {"steps": 10, "minutes": None},
        {"steps": 5, "minutes": None},
    ]


def test_extended_by_minutes(lines, tmp_path, work_clock):
    texts = one_text(lines)
    train(open_run(tmp_path / "run", texts, resume=False, minutes=0.02))
    done = describe_run(tmp_path / "run").steps_done
    extended = open_run(tmp_path / "run", texts, minutes=0.03)
    assert extended.run.plan.recipe.first_step == done
    run = train(extended)
    assert run.trainer.step == run.trainer.recipe.steps > done
    assert describe_run(tmp_path / "run").minutes == pytest.approx(0.05)
    assert run.seconds < 60 * 0.03 * 3


def test_loss_that_rises_with_the_learning_rate_does_not_end_an_extension(
    lines, tmp_path, work_clock, monkeypatch
):
    texts = [Document.of("a.txt", lines[0])]  # read many times
    train(open_run(tmp_path / "run", texts, resume=False, minutes=0.05))
    found = iter([2.0, 3.0, 3.1, 3.0, 2.9, *(99 * [1.9])])

    def validate(run):
        run.losses.append(next(found))
        run.validated_at = run.trainer.step
        return run.losses[-1]

    monkeypatch.setattr(Run, "validate", validate)
    run = train(open_run(tmp_path / "run", texts, minutes=0.5))
    assert run.losses[run.losses_before :][:6] == [2.0, 3.0, 3.1, 3.0, 2.9, 1.9]
    assert run.at_most is None
    assert not [note for note in run.notes if "returned to step" in note]


def test_finished_run_is_extended_only_on_request(lines, tmp_path):
    texts = one_text(lines)
    train(open_run(tmp_path / "run", texts, resume=False, steps=5))
    assert open_run(tmp_path / "run", texts) is None
    with pytest.raises(UserError, match="extend it with `resume` and `minutes` or `steps`"):
        open_run(tmp_path / "run", texts, resume=False, steps=5)
    with pytest.raises(UserError, match="`width` was 32 and is 64"):
        open_run(tmp_path / "run", texts, steps=5, width=64)
    (tmp_path / "run" / ".lock").touch()  # the process that finished it was killed
    assert open_run(tmp_path / "run", texts, steps=5) is None
    (tmp_path / "run" / ".lock").touch()
    assert open_run(tmp_path / "run", texts, extend_again=True) is None  # no minutes or steps are given
    (tmp_path / "run" / ".lock").touch()
    assert train(open_run(tmp_path / "run", texts, steps=1, extend_again=True)).trainer.step == 6
    assert train(open_run(tmp_path / "run", texts, steps=5)).trainer.step == 11


def test_repeating_a_command_with_resume_does_not_extend(lines, tmp_path):
    texts, request = one_text(lines), TrainingRequest(**SMALL, steps=5)
    options = {"cache": tmp_path, "extend": True}
    train(SavedRun.open(tmp_path / "run", texts, request, True, **options))
    assert SavedRun.open(tmp_path / "run", texts, request, True, **options) is None
    again = SavedRun.open(tmp_path / "run", texts, request, True, **options, extend_again=True)
    assert (again.run.plan.recipe.first_step, again.run.plan.recipe.steps) == (5, 10)
    again.folder.close()


def test_repeated_extension_extends(lines, tmp_path):
    texts, request = one_text(lines), TrainingRequest(**SMALL, steps=5)
    options = {"cache": tmp_path, "extend": True}
    train(SavedRun.open(tmp_path / "run", texts, request, True, **options))
    more = TrainingRequest(**SMALL, steps=6)
    assert train(SavedRun.open(tmp_path / "run", texts, more, True, **options)).trainer.step == 11
    assert train(SavedRun.open(tmp_path / "run", texts, more, True, **options)).trainer.step == 17


def test_run_without_a_last_state_names_the_alternative(lines, tmp_path):
    texts = one_text(lines)
    train(open_run(tmp_path / "run", texts, resume=False, steps=5))
    for path in (tmp_path / "run" / "checkpoints").rglob("*.safetensors"):
        path.write_bytes(b"damaged")
    with pytest.raises(UserError, match="no checkpoint to extend it from: fine-tune its model instead"):
        open_run(tmp_path / "run", texts, steps=5)


def test_unspecified_settings_are_those_of_the_run():
    saved = {"blocks": 2, "preset": "lecture", "seed": 3, "steps": 10, "minutes": None, "validation": 0.2}
    request = complete_request(TrainingRequest(minutes=2, seed=4), saved)
    assert (request.blocks, request.preset, request.seed) == (2, "lecture", 4)
    assert (request.minutes, request.steps, request.validation) == (2, None, 0.2)


def contains(tokens, part):
    """Whether these tokens contain the part."""
    windows = np.lib.stride_tricks.sliding_window_view(tokens, len(part))
    return bool((windows == part).all(1).any())


def check_held_out(before, after):
    """The validation text is the same, and no passage of it is trained on."""
    held = before.validation[:]
    assert after.validation[:].tolist() == held.tolist()
    training = after.tokens[:]
    for start in range(0, len(held) - 300, 97):
        part = held[start : start + 300]
        assert contains(training, part) == contains(before.tokens[:], part)


def test_appended_text_is_trained_on_and_the_held_out_part_is_not(lines, tmp_path):
    before = train(open_run(tmp_path / "run", one_text(lines[:40]), resume=False, steps=5))
    extended = open_run(tmp_path / "run", one_text(lines), steps=5)
    [note] = extended.run.notes
    assert note.startswith("the text has changed: ")
    assert note.endswith(
        "the tokenizer and the validation text stay the same, and what was held out is not trained on"
    )
    after = train(extended)
    check_held_out(before, after)
    old = one_text(lines[:40])[0].read()[0].encode()
    new = one_text(lines)[0].read()[0].encode()
    end = after.tokenizer.end_id
    trained = [*[end, *old, end][: len(before.tokens)], *new[len(old) :], end]
    assert after.tokens[:].tolist() == trained
    # The first validation token has the same context as before.
    assert after.validate() == pytest.approx(after.losses[-2])


def test_interrupted_extension_with_more_text_is_exact(lines, tmp_path):
    for name, stops in (("whole", [None]), ("broken", [7, None])):
        train(open_run(tmp_path / name, one_text(lines[:40]), resume=False, steps=5))
        for stop in stops:
            train(open_run(tmp_path / name, one_text(lines), steps=6), stop)
    for name in FILES:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes(), name
    train(open_run(tmp_path / "broken", one_text(lines), steps=6), 12)
    with pytest.raises(UserError, match="the text differs from the one"):
        open_run(tmp_path / "broken", one_text(lines[:50]), steps=6)


def test_added_and_longer_documents_keep_held_out_documents_out(lines, tmp_path):
    documents = [Document.of(f"{i}.txt", line) for i, line in enumerate(lines[:40])]
    before = train(open_run(tmp_path / "run", documents, resume=False, steps=5, validation=0.2))
    grown = [Document.of(each.name, each.read()[0] + " And then it rained.") for each in documents]
    new = [Document.of("new.txt", line) for line in lines[40:]]
    for texts in (
        [*new, *documents],
        [documents[-1], *new, *documents[:-1]],
        [*grown[30:], *new, *documents[:30]],
    ):
        after = train(open_run(tmp_path / "run", texts, steps=5))
        check_held_out(before, after)
        whole = bytes(each for each in after.tokens[:].tolist() if each < 256).decode(errors="replace")
        assert all(line in whole for line in lines[40:])
        ends = np.flatnonzero(after.tokens[:] == after.tokenizer.end_id)
        assert (np.diff(ends) > 1).all()  # no empty documents
    assert "And then it rained." in whole


def test_short_documents_stay_held_out(tmp_path):
    notes = [f"Note {i}: bought {i * 7} apples" for i in range(60)]
    documents = [Document.of(f"{i}", note) for i, note in enumerate(notes)]
    before = train(open_run(tmp_path / "run", documents, resume=False, steps=5))
    held = bytes(each for each in before.validation[:].tolist() if each < 256).decode()
    after = train(open_run(tmp_path / "run", [Document.of("x", "Something new"), *documents[::-1]], steps=5))
    trained = bytes(each for each in after.tokens[:].tolist() if each < 256).decode()
    whole = [note for note in notes if note in held]
    assert len(whole) >= 5
    assert not any(note in trained for note in whole)
    assert "Something new" in trained


def test_text_that_contains_only_what_was_held_out_is_rejected(lines, tmp_path):
    run = train(open_run(tmp_path / "run", one_text(lines), resume=False, steps=5))
    held = bytes(each for each in run.validation[:].tolist() if each < 256).decode()
    with pytest.raises(UserError, match="no text is left to train on"):
        open_run(tmp_path / "run", [Document.of("a", held)], steps=5)
    assert describe_run(tmp_path / "run").finished


def test_model_fine_tuned_from_an_extended_run_holds_out_the_same(lines, tmp_path):
    before = train(open_run(tmp_path / "run", one_text(lines[:40]), resume=False, steps=5))
    train(open_run(tmp_path / "run", one_text(lines), steps=5))
    tuned = open_run(
        tmp_path / "tuned",
        one_text(lines),
        resume=False,
        **dict.fromkeys(SMALL),
        steps=2,
        start=tmp_path / "run",
    )
    check_held_out(before, train(tuned))


def test_separate_validation_files_are_kept(lines, tmp_path):
    (tmp_path / "check.txt").write_text(lines[0])
    settings = {"validation": [str(tmp_path / "check.txt")]}
    train(open_run(tmp_path / "run", one_text(lines[1:40]), resume=False, steps=5, **settings))
    assert read_held_out(tmp_path / "run", 256) is None
    extended = open_run(tmp_path / "run", one_text(lines[1:]), steps=5)
    assert extended.run.notes[0].endswith("before; the tokenizer stays the same")
    run = train(extended)
    assert len(run.tokens) == len("\n".join(lines[1:]).encode()) + 2


def test_best_model_before_the_extension_is_kept(lines, tmp_path, monkeypatch):
    texts = one_text(lines)
    first = train(open_run(tmp_path / "run", texts, resume=False, steps=10))
    assert not (tmp_path / "run" / "best").exists()
    extended = open_run(tmp_path / "run", texts, steps=5)
    monkeypatch.setattr(type(extended.run), "validate", lambda run: run.losses.append(9.0) or 9.0)
    run = train(extended)
    best = ch.load(tmp_path / "run" / "best", "cpu")
    assert best.evaluate(texts[0].read()[0]).loss == pytest.approx(
        first.model.evaluate(texts[0].read()[0]).loss, rel=1e-5
    )
    [message] = summarize(run, tmp_path / "run" / "best")
    assert "before the run was extended" in message
    assert math.isclose(min(run.losses), first.losses[-1])


def test_python_extends_and_returns_the_model(lines, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(lines[:40]))
    sizes = {**SMALL, "out": tmp_path / "run"}
    ch.train(tmp_path / "text.txt", **sizes, steps=5)
    model = ch.train(tmp_path / "text.txt", out=tmp_path / "run", resume=True, steps=5, device="cpu")
    assert model.training["steps_done"] == 10
    (tmp_path / "text.txt").write_text("\n".join(lines))
    with pytest.warns(UserWarning, match="the text has changed"):
        model = ch.train(tmp_path / "text.txt", out=tmp_path / "run", resume=True, steps=5, device="cpu")
    assert model.training["steps_done"] == 15
    assert (
        ch.train(tmp_path / "text.txt", out=tmp_path / "run", resume=True, device="cpu").training[
            "steps_done"
        ]
        == 15
    )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
def test_extension_killed_at_any_file_operation_is_exact(tmp_path):
    from bench.faults import SIZES, TEXT, read_files
    from tools.fault_injection import Commands, Fault

    (tmp_path / "text.txt").write_text(TEXT)
    command = ["train", "text.txt", "--checkpoint-every", "3"]
    more = [*command, "--resume", "--steps", "7"]
    with Commands(tmp_path, CLEARHEAD_HOME=str(tmp_path / "home")) as commands:
        for name in ("whole", "broken"):
            ended = commands.run(*command, *SIZES.split(), "--steps", "8", "--out", name)
            assert ended.code == 0, ended.err
        ended = commands.run(*more, "--out", "whole")
        assert ended.code == 0, ended.err
        assert "extending the run after step 8" in ended.err
        count = len(ended.operations)
        for at in range(1, count, count // 9):
            ended = commands.run(
                *more, "--out", "broken", fault=Fault(at, ("before", "torn", "after")[at % 3])
            )
            if ended.code != -signal.SIGKILL and "is finished" not in ended.err:
                break
        else:
            ended = commands.run(*more, "--out", "broken")
        if "is finished" in ended.err:  # the last kill came before the extension was recorded
            ended = commands.run(*more, "--out", "broken")
        assert ended.code == 0, ended.err
        assert read_files(tmp_path / "broken") == read_files(tmp_path / "whole")
