"""`clearhead runs`, and the loss curve that `clearhead train` leaves in a run's folder."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from clearhead.cli.progress import TerminalObserver
from clearhead.cli.runs import _how_to_resume

SIZES = {
    "blocks": 1,
    "width": 32,
    "heads": 1,
    "context": 32,
    "batch": 2,
    "tokenizer": "char",
    "device": "cpu",
}
SMALL = [word for name, value in SIZES.items() for word in (f"--{name}", str(value))]


@pytest.fixture
def two_runs(clearhead, story_file, monkeypatch):
    """A finished run and an unfinished one."""
    assert clearhead("train", story_file, "--out", "runs/done", "--steps", 4, *SMALL).code == 0

    monkeypatch.setattr(TerminalObserver, "stepped", lambda self, run, progress: False)
    arguments = ["train", str(story_file), "--out", "runs/half way", "--steps", "4", *SMALL]
    monkeypatch.setattr("sys.argv", ["/somewhere/clearhead", *arguments])
    assert clearhead(*arguments).code == 0


def test_runs_are_listed(two_runs, clearhead, story_file):
    result = clearhead("runs")
    assert result.code == 0
    heading, done, half, _, how, resume = result.out.splitlines()
    assert heading.split()[:3] == ["run", "kind", "steps"]
    assert done.split()[:3] == ["runs/done", "transformer", "4/4"]
    assert done.endswith("finished")
    assert "1/4" in half
    assert half.endswith("unfinished")
    assert how == "to resume an unfinished run:"
    assert resume.startswith(f"  clearhead train {story_file} --out 'runs/half way'")
    assert resume.endswith("--resume")


def test_runs_are_listed_as_json(two_runs, clearhead, tmp_path):
    done, half = json.loads(clearhead("runs", "--json").out)["runs"]
    losses = [json.loads(line) for line in (tmp_path / "runs/done/metrics.jsonl").read_text().splitlines()]
    assert (done["steps"], done["steps_planned"], done["finished"], done["resume"]) == (4, 4, True, None)
    assert done["validation_loss"] == losses[-1]["validation"]
    assert done["best_validation_loss"] == min(each.get("validation", 9) for each in losses)
    assert done["tokens"] == 4 * 2 * 32
    assert (
        done["parameters"] == json.loads(clearhead("models", "runs", "--json").out)["models"][0]["parameters"]
    )
    assert (half["steps"], half["finished"]) == (1, False)
    assert json.loads(clearhead("runs", "runs/done", "--json").out)["runs"] == [done]


def test_damaged_run_is_skipped(two_runs, clearhead, tmp_path):
    for content in ("", "[]", "{}", '{"finished": true, "plan": 3}', "\xff"):
        (tmp_path / "runs/half way/run.json").write_text(content, encoding="latin-1")
        result = clearhead("runs")
        assert result.code == 0, content
        assert len(result.out.splitlines()) == 2, content
        assert result.err.startswith("skipped: "), content
        assert result.err.count("\n") == 1, content


def test_no_runs_prints_how_to_start_one(clearhead, refused):
    assert clearhead("runs").out == "no runs in runs; start one: clearhead train my.txt\n"
    refused("runs", "nowhere", words=["no such folder: nowhere"])


def test_loss_curve_is_reproducible(clearhead, story_file, tmp_path):
    for name in ("one", "two"):
        assert clearhead("train", story_file, "--out", name, "--steps", 4, *SMALL).code == 0
    drawn = (tmp_path / "one" / "loss.svg").read_bytes()
    assert drawn == (tmp_path / "two" / "loss.svg").read_bytes()
    ElementTree.fromstring(drawn)
    assert b"validation" in drawn


def test_failure_to_draw_the_curve_is_only_reported(clearhead, story_file, tmp_path, monkeypatch):
    def fail(*_):
        raise RuntimeError("no ink")

    monkeypatch.setattr("clearhead.runs.loss_curve.loss_curve", fail)
    result = clearhead("train", story_file, "--out", "model", "--steps", 2, *SMALL)
    assert result.code == 0
    assert "clearhead: loss.svg was not drawn (no ink)\n" in result.err
    assert (tmp_path / "model" / "config.json").exists()
    assert json.loads((tmp_path / "model" / "run.json").read_text())["finished"]


def test_resume_hint_for_moved_runs_and_python_runs():
    begun = ["x", "train", "my.txt", "--out", "runs/old", "--resume"]
    assert _how_to_resume(begun, Path("runs/new")) == "clearhead train my.txt --out runs/new --resume"
    assert _how_to_resume(["x", "train", "a"], Path("r")) == "clearhead train a --out r --resume"
    assert _how_to_resume(["script.py"], Path("r")).startswith("ch.train(…, out='r', resume=True)")
