"""Where a run meets the machine: signals, memory, devices, encodings, full outputs."""

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import pytest

from clearhead.language_model import load
from clearhead.runs import run as runs

SMALL = ("--steps", 3, "--blocks", 1, "--width", 32, "--heads", 1, "--context", 32, "--tokenizer", "char")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_saving_does_not_lose_the_model(number, clearhead, story_file, tmp_path, monkeypatch):
    save = runs.save_somewhere

    def signalled(model, folder):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        return save(model, folder)

    monkeypatch.setattr(runs, "save_somewhere", signalled)
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    result = clearhead("train", story_file, "--out", "model", *SMALL)
    assert result.code == 0, result.err
    assert load(tmp_path / "model").generate("The", tokens=3)
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_diverged_run_says_what_to_lower(clearhead, story_file):
    result = clearhead("train", story_file, *SMALL, "--learning-rate", 1e30)
    last = result.err.splitlines()[-1]
    assert result.code == 2
    assert last.startswith("clearhead: training diverged")
    assert "--learning-rate" in last


@pytest.mark.parametrize("option", [("--batch", 100_000_000), ("--width", 1_000_000), ("--blocks", 1000)])
def test_what_memory_cannot_hold_is_refused_at_once(option, refused, story_file):
    sizes = ("--width", 4096) if option[0] == "--blocks" else ()
    refused("train", story_file, "--steps", 2, *sizes, *option, words=["GB of memory", "--accumulation"])


def test_a_text_given_twice_would_validate_on_what_it_trains_on(refused, story_file):
    refused("train", story_file, story_file, words=["was given twice"])


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no endless device to read")
def test_an_endless_device_is_refused(refused):
    refused("train", "/dev/zero", words=["is a device"])


def test_every_file_of_a_model_has_the_users_mode(clearhead, story_file, tmp_path):
    before = os.umask(0o027)
    try:
        clearhead("train", story_file, "--out", "model", *SMALL)
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "model").iterdir()}
    assert modes == {0o640}


def test_binary_standard_input_is_refused_while_it_is_read(command, tmp_path):
    done = subprocess.run(
        [*command, "train", "-"], input=b"text\0" * 1000, capture_output=True, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 2
    assert b"standard input is not text" in done.stderr
    assert not list(Path(os.environ["TMPDIR"]).iterdir())


def test_a_request_to_end_takes_what_is_temporary_along(command, tmp_path):
    process = subprocess.Popen(
        [*command, "train", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    process.stdin.write(b"Some text. " * 1000)
    process.stdin.flush()
    temporary = Path(os.environ["TMPDIR"])
    for _ in range(1200):  # a busy machine takes long to import torch
        if list(temporary.glob("clearhead-*")):
            break
        time.sleep(0.05)
    assert list(temporary.glob("clearhead-*"))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == b"clearhead: stopped\n"
    assert not list(temporary.iterdir())


def test_an_output_that_knows_no_unicode_shows_question_marks(command, model_folder, tmp_path):
    (tmp_path / "run").mkdir()
    done = subprocess.run(
        [*command, "inspect", str(model_folder), "a b", "--head", "0"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device to write to")
def test_a_full_output_is_the_users_to_mend(command, model_folder, story_file):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*command, "eval", str(model_folder), str(story_file)],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"clearhead: no space left for the output")
    assert done.stderr.count(b"\n") == 1
