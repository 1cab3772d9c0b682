"""Runs on disk."""

import pytest
from filelock import FileLock

from clearhead.errors import UserError
from clearhead.runs.listing import describe_run, find_runs, is_held, planned_steps, resume_command
from clearhead.runs.training import train


@pytest.fixture
def run(story_file, tmp_path):
    folder = tmp_path / "runs" / "my"
    sizes = {"blocks": 1, "heads": 1, "width": 8, "context": 16, "batch": 2, "tokenizer": "char"}
    train(story_file, folder, steps=4, snapshots=2, device="cpu", **sizes)
    return folder


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
        ("", None),
    ],
)
def test_resume_command(tmp_path, began, resumes, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = resume_command(began.split(), tmp_path / "there")
    assert made == (None if resumes is None else resumes.replace("there", str(tmp_path / "there")).split())
