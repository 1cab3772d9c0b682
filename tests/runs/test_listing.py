"""Runs on disk."""

import inspect
import json
import shutil

import numpy as np
import pytest
from filelock import FileLock

import clearhead as ch
from clearhead.cli.runs import _describe
from clearhead.errors import UserError
from clearhead.files import seal
from clearhead.runs import listing
from clearhead.runs.call import train
from clearhead.runs.listing import (
    ListedRuns,
    describe_run,
    is_extendable,
    is_held,
    list_texts,
    planned_steps,
    resume_command,
)
from clearhead.runs.teacher_folders import find_runs


@pytest.fixture(scope="module")
def finished(story_file, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "my"
    sizes = {"blocks": 1, "heads": 1, "width": 8, "context": 16, "batch": 2, "tokenizer": "char"}
    train(story_file, folder, steps=4, snapshots=2, device="cpu", **sizes)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    """A finished run that the test may change."""
    return shutil.copytree(finished, tmp_path / "runs" / "my")


def test_finished_run_is_listed_and_described(run, tmp_path):
    (tmp_path / "runs" / "empty").mkdir()
    assert find_runs([tmp_path / "runs", tmp_path / "nowhere"]) == [run]
    assert find_runs([run]) == [run]
    told = describe_run(run)
    assert (told.finished, told.running, told.steps_done, told.steps_planned) == (True, False, 4, 4)
    assert (told.snapshots, told.tokens, told.minutes, told.preset) == ([1, 4], 4 * 2 * 16, None, "modern")


def test_damaged_run_is_rejected(run):
    (run / "run.json").write_text('{"finished": true}')
    with pytest.raises(UserError, match="damaged"):
        describe_run(run)


def test_timed_run_may_miss_its_first_plan():
    settings = {"plan": {"recipe": {"steps": 120}}, "finished": False}
    assert planned_steps(settings, 40) == 120
    assert planned_steps(settings, 134) == 134
    assert planned_steps({**settings, "finished": True}, 110) == 110


def test_lock_counts_only_while_held(tmp_path):
    assert not is_held(tmp_path)
    lock = FileLock(tmp_path / ".lock")
    with lock:
        assert is_held(tmp_path)
    (tmp_path / ".lock").touch()  # as left behind by a killed process
    assert not is_held(tmp_path)
    with lock.acquire(timeout=0):
        assert is_held(tmp_path)


@pytest.mark.parametrize(
    ("began", "resumes"),
    [
        ("clearhead train a.txt --steps 5", "train a.txt --steps 5 --out there --resume"),
        ("clearhead train a.txt --out here --resume", "train a.txt --out there --resume"),
        ("clearhead train -o here a.txt", "train -o there a.txt --resume"),
        ("clearhead train a.txt --out=here", "train a.txt --out=there --resume"),
        ("notebook.py", None),
        ("ch.train train", None),
        ("", None),
    ],
)
def test_resume_command(tmp_path, began, resumes, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = resume_command(began.split(), tmp_path / "there")
    assert made == (None if resumes is None else resumes.replace("there", str(tmp_path / "there")).split())


@pytest.mark.parametrize(
    "began",
    [
        "clearhead train my.txt --minutes 3 --seed 1",
        "clearhead train my.txt --minutes=3 --seed 1",
        "clearhead train my.txt --seed 1 --steps 50 --resume",
        "clearhead train my.txt --seed 1",
    ],
)
def test_extending_replaces_minutes_and_steps(began, tmp_path):
    made = resume_command(began.split(), tmp_path, minutes=2.5)
    assert made == ["train", "my.txt", "--seed", "1", "--minutes", "2.5", "--out", str(tmp_path), "--resume"]


def test_run_is_extendable_if_the_command_line_can_resume_its_last_state(run):
    settings = json.loads((run / "run.json").read_text())
    assert not is_extendable(describe_run(run))  # it was started from Python
    settings["command"] = ["clearhead", "train", "my.txt"]
    (run / "run.json").write_text(json.dumps(seal(settings)))
    assert is_extendable(describe_run(run))
    (run / "run.json").write_text(json.dumps(seal({**settings, "finished": False})))
    assert not is_extendable(describe_run(run))
    (run / "run.json").write_text(json.dumps(seal(settings)))
    shutil.rmtree(run / "checkpoints")
    assert not is_extendable(describe_run(run))


def test_texts_are_named_by_the_command_or_the_call():
    assert list_texts(["clearhead", "train", "books/a.txt", "b.txt", "--steps", "5"]) == ["a.txt", "b.txt"]
    assert list_texts(["ch.train", "books/a.txt", "b.txt"]) == ["a.txt", "b.txt"]
    assert list_texts(["notebook.py"]) == []


def test_runs_are_listed_in_python(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [listed] = ch.runs()
    assert listed.folder.resolve() == run
    assert (listed.text, listed.tokenizer.split()[0]) == ("stories.txt", "char")
    assert (listed.steps_done, listed.steps_planned, listed.finished) == (4, 4, True)
    assert ch.runs()["my"] == ch.runs("runs/my")[0] == ch.runs("runs/my")["runs/my"] == listed
    with pytest.raises(UserError, match="no run 'myy' in runs; did you mean 'my'"):
        ch.runs()["myy"]
    assert list(inspect.signature(ch.runs).parameters) == ["folder"]


def test_python_lists_the_same_numbers_as_the_command(run, tmp_path):
    listed, told = ch.runs(tmp_path / "runs")[0], _describe(run)
    for name in ("validation_loss", "best_validation_loss", "bits_per_byte", "best_bits_per_byte"):
        assert getattr(listed, name) == told[name]
    assert (listed.text, listed.tokenizer, listed.parameters) == (
        told["text"],
        told["tokenizer"],
        told["parameters"],
    )
    # Each token is a character of one byte, except for the token that ends the text.
    assert listed.bits_per_byte == pytest.approx(listed.validation_loss / np.log(2), rel=0.01)


def test_metrics_are_arrays(run):
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    metrics = ch.runs(run)[0].metrics
    assert {len(values) for values in metrics.values()} == {4}
    assert metrics["step"].tolist() == [1, 2, 3, 4]
    assert metrics["loss"].tolist() == [record["loss"] for record in records]
    assert metrics["smoothed"][1] == metrics["loss"][1]  # a quarter of two steps is less than one
    measured = ["validation" in record for record in records]
    assert np.isfinite(metrics["validation"]).tolist() == measured
    assert metrics["validation"][-1] == records[-1]["validation"]
    assert (metrics["step"].dtype, metrics["loss"].dtype) == (np.int64, np.float64)


def test_missing_and_non_finite_values_are_nan(run):
    settings = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(seal({**settings, "metrics_sha256": None})))
    (run / "metrics.jsonl").write_text('{"step": 1, "loss": null}\n{"step": 2, "loss": 3}\n{"st')
    metrics = ch.runs(run)[0].metrics
    assert metrics["step"].tolist() == [1, 2]
    np.testing.assert_array_equal(metrics["loss"], [np.nan, 3.0])
    assert np.isnan(metrics["validation"]).all()


def test_run_without_metrics_has_empty_curves(run):
    (run / "metrics.jsonl").unlink()
    [listed] = ch.runs(run)
    assert listed.metrics["loss"].shape == (0,)
    assert listed.validation_loss is listed.bits_per_byte is None
    assert "0 of 0 steps, finished" in repr(listed)


def test_damaged_run_is_skipped_with_a_warning(run, tmp_path):
    (run / "run.json").write_text("{}")
    with pytest.warns(UserWarning, match=r"skipped: .*run\.json") as told:
        assert ch.runs(tmp_path / "runs") == []
    assert told[0].filename == __file__


def test_missing_folder_is_rejected_unless_it_is_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert repr(ch.runs()) == "no runs in runs; start one: ch.train('my.txt', out='runs/my')"
    assert ch.runs()._repr_html_().startswith("<p>no runs in runs")
    with pytest.raises(UserError, match="no such folder: nowhere"):
        ch.runs("nowhere")


def test_runs_are_shown_as_tables(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = ch.runs()
    heading, row = repr(listed).splitlines()
    assert heading.split() == ["run", "text", "tokenizer", "steps", "bits", "per", "byte", "state"]
    assert row.split()[:2] == ["runs/my", "stories.txt"]
    assert row.split()[-3:] == ["4/4", f"{listed[0].bits_per_byte:.4f}", "finished"]
    assert repr(listed[0]).startswith("ListedRun('runs/my': stories.txt, char ")
    assert repr(listed[0]).endswith(f"4 of 4 steps, {listed[0].bits_per_byte:.4f} bits per byte, finished)")
    run.rename(run.parent / "<b>")
    listed = ch.runs()
    for shown in (listed._repr_html_(), listed[0]._repr_html_()):
        assert "runs/&lt;b&gt;" in shown
        assert "<b>" not in shown
        assert f"{listed[0].bits_per_byte:.4f}" in shown


def test_long_list_is_cut(run, monkeypatch):
    monkeypatch.setattr(listing, "MOST_SHOWN", 2)
    many = ListedRuns(run.parent, [describe_run(run)] * 5)
    assert repr(many).endswith("\n… and 3 more")
    assert len(repr(many).splitlines()) == 4
    assert "… and 3 more" in many._repr_html_()
