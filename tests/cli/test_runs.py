"""`clearhead runs`, and the loss curve that `clearhead train` leaves in a run's folder."""

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from clearhead.cli.progress import TerminalObserver
from clearhead.cli.runs import _resume_command
from clearhead.files import seal

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
    assert heading.split()[:5] == ["run", "kind", "text", "tokenizer", "steps"]
    assert done.split()[:2] == ["runs/done", "transformer"]
    assert "4/4" in done
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


def test_loss_curve_is_reproducible(clearhead, story_file, tmp_path, real_curves):
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
    assert _resume_command(begun, Path("runs/new")) == "clearhead train my.txt --out runs/new --resume"
    assert _resume_command(["x", "train", "a"], Path("r")) == "clearhead train a --out r --resume"
    assert _resume_command(["script.py"], Path("r")).startswith("ch.train(…, out='r', resume=True)")


def test_runs_are_compared_in_bits_per_byte(clearhead, story_file):
    for tokenizer in ("byte", "bpe"):
        folder, sizes = f"runs/{tokenizer}", [*SMALL[:-4], "--device", "cpu", "--tokenizer", tokenizer]
        assert clearhead("train", story_file, "--out", folder, "--steps", 2, *sizes).code == 0
    byte, bpe = sorted(json.loads(clearhead("runs", "--json").out)["runs"], key=lambda run: -len(run["run"]))
    assert byte["text_sha256"] == bpe["text_sha256"]
    assert (byte["tokenizer"].split()[0], bpe["tokenizer"].split()[0]) == ("byte", "bpe")
    # Each token is one byte, except for the one that ends the text.
    assert byte["bits_per_byte"] == pytest.approx(byte["validation_loss"] / np.log(2), rel=0.01)
    assert bpe["bits_per_byte"] < 0.8 * bpe["validation_loss"] / np.log(2)
    heading, *_ = clearhead("runs").out.splitlines()
    assert "bits per byte" in heading
    assert "tokenizer" in heading


def test_repeated_command_says_why_it_does_not_extend(clearhead, story_file):
    given = ["train", story_file, "--out", "runs/one", "--resume", *SMALL, "--steps", 2]
    assert clearhead(*given).code == 0
    assert clearhead(*given).err == (
        "the run in runs/one is finished, and a repeated command does not extend it: give another --minutes or "
        "--steps, or try: clearhead generate runs/one\n"
    )


def test_finished_run_is_extended(clearhead, story_file, tmp_path):
    sizes = ["--blocks", 1, "--heads", 1, "--width", 32, "--context", 32, "--device", "cpu"]
    assert clearhead("train", story_file, "--out", "runs/one", "--steps", 4, *sizes).code == 0
    told = clearhead("train", story_file, "--out", "runs/one", "--resume")
    assert "the run in runs/one is finished; to extend it, add --minutes or --steps; try: " in told.err
    extended = clearhead(
        "train", story_file, "--out", "runs/one", "--resume", "--steps", 3, "--device", "cpu"
    )
    assert extended.code == 0, extended.err
    assert "7 steps (3 more) of " in extended.err
    assert "extending the run after step 4\n" in extended.err
    assert "step 7/7   loss " in extended.err
    [run] = json.loads(clearhead("runs", "--json").out)["runs"]
    assert (run["steps"], run["steps_planned"], run["finished"]) == (7, 7, True)
    more = tmp_path / "more.txt"
    more.write_text(story_file.read_text() + "\nAnna found a kite in the garden. It was red." * 9)
    extended = clearhead("train", more, "--out", "runs/one", "--resume", "--steps", 3, "--device", "cpu")
    assert "clearhead: the text has changed: " in extended.err
    assert "step 10/10   loss " in extended.err


def test_teachers_and_students_are_marked(clearhead, story_file, tmp_path):
    names = ["runs/my/teachers/1", "runs/my/teachers/2"]
    for seed, name in enumerate(names):
        assert clearhead("train", story_file, "--out", name, "--steps", 2, "--seed", seed, *SMALL).code == 0
    (tmp_path / "runs/my/teachers/plan.json").write_text('{"format": 1, "count": 2}')
    given = [word for name in names for word in ("--from-teachers", name)]
    sizes = ["--steps", 2, "--blocks", 1, "--width", 32, "--heads", 1, "--batch", 2, "--device", "cpu"]
    assert clearhead("train", story_file, "--out", "runs/one", *sizes, *given).code == 0
    result = clearhead("runs")
    lines = [line.split()[0] for line in result.out.splitlines()[1:4]]
    assert lines == [*names, "runs/one"]
    ends = ["teacher 1 of 2, finished", "teacher 2 of 2, finished", "student of 2 teachers, finished"]
    for line, end in zip(result.out.splitlines()[1:4], ends, strict=True):
        assert line.endswith(end)
    assert "~" not in result.out
    settings = json.loads((tmp_path / names[0] / "run.json").read_text())
    settings["held_out_tokens"] *= 4
    (tmp_path / names[0] / "run.json").write_text(json.dumps(seal(settings)))
    assert clearhead("runs").out.count("~") == 3  # its newest and lowest loss, and what it means
    first, _, student = json.loads(clearhead("runs", "--json").out)["runs"]
    assert (first["validated_share"], student["validated_share"]) == (0.25, 1)
    assert [first[name] for name in ("teacher", "teachers", "student")] == [1, 2, "runs/my"]
    assert [student[name] for name in ("teacher", "teachers", "student")] == [None, 2, None]
