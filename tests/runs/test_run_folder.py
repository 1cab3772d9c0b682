"""Run folders: interrupted and resumed runs are identical, bit for bit, to uninterrupted ones."""

import errno
import io
import json
import math
import os
import shutil
from contextlib import ExitStack, contextmanager
from itertools import count, islice
from pathlib import Path

import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run_folder import RunFolder
from clearhead.runs.run_metrics import read_metrics
from clearhead.runs.saved_run import SavedRun, snapshot_steps
from clearhead.runs.training import save_somewhere
from clearhead.text.corpus import documents

SMALL = {
    "steps": 24,
    "blocks": 1,
    "width": 32,
    "heads": 1,
    "context": 32,
    "batch": 4,
    "tokenizer": "char",
    "dropout": 0.2,
    "device": "cpu",
}


@pytest.fixture(scope="module")
def short_text(tmp_path_factory):
    """A text short enough that an epoch takes a few steps."""
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("The chicken didn't cross the road because it was too tired.\n" * 20)
    return path


def open_run(folder, text, cache, resume=False, **more):
    keeping = {name: more.pop(name) for name in ("checkpoint_every", "snapshots") if name in more}
    request = TrainingRequest(**{**SMALL, **more})
    return SavedRun.open(folder, list(documents([text])), request, resume, cache=cache, **keeping)


def train_until(kept, step):
    with kept:
        for progress in kept:
            if progress.record.step == step:
                kept.save()
                return
        kept.run.model.save(kept.folder.path, overwrite=True)
        kept.finish()


@pytest.fixture(scope="module", params=["muon", "adamw"])
def uninterrupted(request, short_text, tmp_path_factory):
    """An optimizer, and the folder of an uninterrupted run with it."""
    folder = tmp_path_factory.mktemp("whole")
    train_until(open_run(folder / "whole", short_text, folder, optimizer=request.param), None)
    return request.param, folder / "whole"


@pytest.mark.parametrize("stops", [pytest.param((1,), marks=pytest.mark.slow), (7,), (8, 9), (3, 4, 23)])
def test_resumed_run_equals_uninterrupted_run(uninterrupted, stops, short_text, tmp_path):
    optimizer, whole = uninterrupted
    for stop in (*stops, None):
        train_until(
            open_run(tmp_path / "broken", short_text, tmp_path, resume=True, optimizer=optimizer), stop
        )
    for name in ("metrics.jsonl", "model.safetensors", "clearhead.json", "config.json", "tokenizer.json"):
        assert (whole / name).read_bytes() == (tmp_path / "broken" / name).read_bytes(), name
    assert len(read_metrics(tmp_path / "broken")) == 24
    for name in ("tensors.safetensors", "state.json"):  # the last state, for extending the run
        [one, other] = [
            list((folder / "checkpoints").glob(f"*/{name}")) for folder in (whole, tmp_path / "broken")
        ]
        assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]
        assert [path.parent.name for path in one] == ["step-000000024"]
    assert not (tmp_path / "broken" / ".lock").exists()


@pytest.mark.parametrize("settings", [{"recipe": "classic"}, {"bidirectional": True}])
def test_classic_recipe_and_masked_training_resume_exactly(settings, short_text, tmp_path):
    train_until(open_run(tmp_path / "whole", short_text, tmp_path, **settings), None)
    for stop in (8, 9, None):
        train_until(open_run(tmp_path / "broken", short_text, tmp_path, resume=True, **settings), stop)
    for name in ("metrics.jsonl", "model.safetensors", "clearhead.json", "config.json", "tokenizer.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes(), name


def test_finished_run_is_not_resumed_or_overwritten(short_text, tmp_path):
    train_until(open_run(tmp_path / "run", short_text, tmp_path), None)
    before = (tmp_path / "run" / "model.safetensors").read_bytes()
    assert open_run(tmp_path / "run", short_text, tmp_path, resume=True) is None
    with pytest.raises(UserError, match="already contains a finished run"):
        open_run(tmp_path / "run", short_text, tmp_path)
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == before


def test_second_run_in_the_same_folder_is_rejected(short_text, tmp_path):
    with open_run(tmp_path / "run", short_text, tmp_path) as kept:
        next(iter(kept))
        with pytest.raises(UserError, match="another run is training in"):
            open_run(tmp_path / "run", short_text, tmp_path, resume=True)
    with pytest.raises(UserError, match="contains an unfinished run"):
        open_run(tmp_path / "run", short_text, tmp_path)


def test_resuming_with_other_text_or_settings_is_rejected(short_text, tmp_path):
    train_until(open_run(tmp_path / "run", short_text, tmp_path), 3)
    other = tmp_path / "other.txt"
    other.write_text(short_text.read_text() + "!")
    with pytest.raises(UserError, match="the text differs from the one"):
        open_run(tmp_path / "run", other, tmp_path, resume=True)
    with pytest.raises(UserError, match="`width` was 32 and is 64"):
        open_run(tmp_path / "run", short_text, tmp_path, resume=True, width=64)
    assert open_run(tmp_path / "run", short_text, tmp_path, resume=True).run.trainer.step == 3


def test_run_without_steps_leaves_no_folder(short_text, tmp_path):
    with open_run(tmp_path / "new" / "run", short_text, tmp_path / "cache"):
        assert (tmp_path / "new" / "run" / "run.json").exists()
    assert not (tmp_path / "new").exists()


def test_checkpoint_interval_is_respected(short_text, tmp_path):
    with open_run(tmp_path / "run", short_text, tmp_path, checkpoint_every=5) as kept:
        for progress in kept:
            if progress.record.step == 18:
                break
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["step-000000010", "step-000000015"]


def test_failing_checkpoints_do_not_stop_training(short_text, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("clearhead.runs.run_folder.save_checkpoint", refuse)
    with open_run(tmp_path / "run", short_text, tmp_path, checkpoint_every=5) as kept:
        assert len(list(kept)) == 24
        assert kept.run.notes == [
            "a checkpoint could not be saved (No space left on device); training continues"
        ]


def test_snapshots_match_the_model_at_their_step(short_text, tmp_path):
    seen = {}
    with open_run(tmp_path / "run", short_text, tmp_path, snapshots=4) as kept:
        for progress in kept:
            seen[progress.record.step] = kept.run.model.logits("The")
    assert snapshot_steps(4, 24) == {1, 3, 8, 24}
    for step in (1, 3, 8, 24):
        model = clearhead.load(tmp_path / "run", "cpu", step=step)
        assert torch.equal(model.logits("The"), seen[step])
        assert model.name == f"run@{step}"
    with pytest.raises(UserError, match="expected one of 1, 3, 8, 24"):
        clearhead.load(tmp_path / "run", step=5)


def test_best_model_is_kept_if_not_the_last(short_text, tmp_path, monkeypatch):
    losses = iter([3.0, 2.0, 2.5, 2.6, 2.7])
    monkeypatch.setattr("clearhead.runs.run.evaluate", lambda *_: next(losses))
    with open_run(tmp_path / "run", short_text, tmp_path) as kept:
        best = None
        for progress in kept:
            if progress.validation == 2.0:
                best = kept.run.model.logits("The")
        kept.run.model.save(tmp_path / "run", overwrite=True)
        kept.finish()
    assert torch.equal(clearhead.load(tmp_path / "run" / "best", "cpu").logits("The"), best)
    assert not torch.equal(clearhead.load(tmp_path / "run", "cpu").logits("The"), best)


def test_non_finite_steps_are_skipped_then_rolled_back(short_text, tmp_path, monkeypatch):
    kept = open_run(tmp_path / "run", short_text, tmp_path)
    trainer = kept.run.trainer
    gather, calls = trainer._forward_backward, []

    def break_some(rate):
        loss, norm = gather(rate)
        calls.append(trainer.step)
        return math.nan if len(calls) in (6, 13, 14, 15) else loss, norm

    monkeypatch.setattr(trainer, "_forward_backward", break_some)
    with kept:
        records = [progress.record for progress in kept]
    assert [record.step for record in records if record.skipped] == [6, 13, 14, 15]
    assert [record.step for record in records[14:17]] == [15, 11, 12]  # last validated after step 10
    assert len(kept.run.notes) == 1
    assert "returned to step 10, with 0.5× the learning rate" in kept.run.notes[0]
    assert records[-1].step == 24
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[5]["loss"] is None


def check_same_files(one, other):
    """All files are the same, including those of the last checkpoint, except run.json, which names the folder."""
    paths = {path.relative_to(one) for path in one.rglob("*") if path.is_file() and path.name != "run.json"}
    assert all((other / path).is_file() for path in paths)
    assert [path for path in sorted(paths) if (one / path).read_bytes() != (other / path).read_bytes()] == []


def break_at(kept, steps, least=1.0):
    """Make the loss NaN at these steps while the learning rate scale is at least `least`."""
    trainer = kept.run.trainer
    gather = trainer._forward_backward

    def gather_some(rate):
        loss, norm = gather(rate)
        return math.nan if trainer.step + 1 in steps and trainer.slowdown >= least else loss, norm

    trainer._forward_backward = gather_some
    return kept


@pytest.mark.parametrize(
    ("steps", "least", "good", "turns"),
    [
        ({12, 13, 14}, 1.0, 10, range(10, 19)),  # validated after steps 5, 10, 15, 20 and 24
        ({12, 13, 14}, 0.5, 10, range(14, 22, 3)),  # two rollbacks to the same state
        ({2, 3, 4}, 1.0, 0, range(6)),  # rollback to the beginning
        ({15}, 1.0, 10, range(13, 17)),  # at a validation, one such step is enough
    ],
)
@pytest.mark.slow
def test_run_interrupted_around_a_rollback_resumes_exactly(steps, least, good, turns, short_text, tmp_path):
    whole = break_at(open_run(tmp_path / "whole", short_text, tmp_path), steps, least)
    train_until(whole, None)
    assert [f"returned to step {good}," in note for note in whole.run.notes] == [True] * (
        1 if least == 1 else 2
    )
    for turn in turns:
        folder = tmp_path / f"broken-{turn}"
        for stop in (turn, None):  # interrupt there, then run to the end
            kept = open_run(folder, short_text, tmp_path, resume=True)
            break_after(break_at(kept, steps, least), stop)
        check_same_files(tmp_path / "whole", folder)


def break_after(kept, stop):
    """Like `train_until`, but counts all steps taken, including those undone by a rollback."""
    with kept:
        for turn, _ in enumerate(kept):
            if turn == stop:
                kept.save()
                return
        kept.run.model.save(kept.folder.path, overwrite=True)
        kept.finish()


@pytest.mark.slow
def test_run_killed_around_a_rollback_resumes_exactly(short_text, tmp_path):
    """Nothing is saved on exit: only the checkpoints of every third step remain."""
    every = {"checkpoint_every": 3}
    train_until(break_at(open_run(tmp_path / "whole", short_text, tmp_path, **every), {12, 13, 14}), None)
    for turn in range(11, 16):
        folder = tmp_path / f"broken-{turn}"
        with break_at(open_run(folder, short_text, tmp_path, **every), {12, 13, 14}) as kept:
            next(islice(kept, turn, None))
        assert len(list((folder / "checkpoints").glob("step-*"))) <= 4
        kept = break_at(open_run(folder, short_text, tmp_path, resume=True, **every), {12, 13, 14})
        assert kept.run.good.step == 10
        train_until(kept, None)
        check_same_files(tmp_path / "whole", folder)


def test_diverging_run_stops_with_a_clear_error(short_text, tmp_path, monkeypatch):
    kept = open_run(tmp_path / "run", short_text, tmp_path)
    monkeypatch.setattr(kept.run.trainer, "_forward_backward", lambda _: (math.inf, 1.0))
    with kept, pytest.raises(UserError, match="training diverged at step"):
        list(kept)


def test_clock_that_jumps_changes_nothing(short_text, tmp_path, monkeypatch):
    """The clock jumps by years each time it is read, and the files are from the future when the run is resumed."""
    train_until(open_run(tmp_path / "whole", short_text, tmp_path), None)
    jumps = count()
    monkeypatch.setattr("time.time", lambda: 2e9 * (next(jumps) % 2))
    folder = tmp_path / "jumps"
    train_until(open_run(folder, short_text, tmp_path), 13)
    for path in folder.rglob("*"):
        os.utime(path, (4e9, 4e9))
    train_until(open_run(folder, short_text, tmp_path, resume=True), None)
    check_same_files(tmp_path / "whole", folder)


@contextmanager
def read_only(folder):
    """Refuse all writes in a folder, as a file system that has become read-only does."""

    def refusing(real):
        def operation(path, *given, **named):
            mode = given[0] if given and isinstance(given[0], str) else named.get("mode", "r")
            writes = real is not io.open or set(mode) & set("wxa+")
            if writes and Path(path).absolute().is_relative_to(folder):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
            return real(path, *given, **named)

        return operation

    with pytest.MonkeyPatch.context() as patched:
        for name in ("mkdir", "replace", "rename", "unlink", "rmdir"):
            patched.setattr(os, name, refusing(getattr(os, name)))
        patched.setattr(io, "open", refusing(io.open))
        yield


def test_folder_that_becomes_read_only_loses_nothing(short_text, tmp_path):
    """Training continues, each kind of failed save is noted once, and the run resumes from the last saved state."""
    train_until(open_run(tmp_path / "whole", short_text, tmp_path, checkpoint_every=3), None)
    folder = tmp_path / "run"
    kept = open_run(folder, short_text, tmp_path, checkpoint_every=3)
    with ExitStack() as stack, kept:
        for progress in kept:
            if progress.record.step == 8:
                stack.enter_context(read_only(folder))
        saved, error = save_somewhere(kept.run.model, folder)
    assert progress.record.step == 24
    assert all("Read-only file system" in note for note in kept.run.notes)
    assert sorted(note.split(" could not be saved")[0] for note in kept.run.notes) == [
        *("a checkpoint", "the best model so far", "the metrics")
    ]
    assert "(Read-only file system): the model was not saved" in str(error)
    weights = clearhead.load(tmp_path / "whole", "cpu").network.state_dict()
    for name, tensor in clearhead.load(saved, "cpu").network.state_dict().items():
        assert torch.equal(tensor, weights[name])
    shutil.rmtree(saved)
    kept = open_run(folder, short_text, tmp_path, resume=True, checkpoint_every=3)
    assert kept.run.trainer.step == 6
    train_until(kept, None)
    check_same_files(tmp_path / "whole", folder)


def test_run_folders_contain_no_timestamps(short_text, tmp_path):
    for name in ("one", "two"):
        train_until(open_run(tmp_path / name, short_text, tmp_path), None)
    for path in filter(Path.is_file, (tmp_path / "one").rglob("*")):
        other = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert path.read_bytes() == other.read_bytes(), path


def test_locked_folder_is_rejected(tmp_path):
    held = RunFolder(tmp_path / "run")
    with pytest.raises(UserError, match="another run"):
        RunFolder(tmp_path / "run")
    held.close()
    RunFolder(tmp_path / "run").close()
