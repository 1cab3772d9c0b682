"""Interaction with the machine: signals, memory, devices, encodings, and a full output device."""

import os
import signal
import stat
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from clearhead.cli.signals import RECEIVED, interrupt
from clearhead.language_model import load
from clearhead.runs import training

SMALL = ("--steps", 3, "--blocks", 1, "--width", 32, "--heads", 1, "--context", 32, "--tokenizer", "char")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_during_saving_does_not_lose_the_model(number, clearhead, story_file, tmp_path, monkeypatch):
    save = training.save_somewhere

    def signalled(model, folder):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        return save(model, folder)

    monkeypatch.setattr(training, "save_somewhere", signalled)
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    result = clearhead("train", story_file, "--out", "model", *SMALL)
    assert result.code == 0, result.err
    assert load(tmp_path / "model").generate("The", tokens=3)
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_interrupt_swallowed_by_an_import_still_stops_training(clearhead, story_file):
    try:
        with suppress(KeyboardInterrupt):  # as some libraries do
            interrupt(signal.SIGINT, None)
        result = clearhead("train", story_file, "--out", "model", *SMALL, "--steps", 50)
    finally:
        RECEIVED.clear()
    assert result.code == 0, result.err
    assert "stopped after 1 step" in result.err


def test_diverged_run_suggests_a_lower_learning_rate(clearhead, story_file):
    result = clearhead("train", story_file, *SMALL, "--learning-rate", 1e30)
    last = result.err.splitlines()[-1]
    assert result.code == 2
    assert last.startswith("clearhead: training diverged")
    assert "lower the learning rate" in last


@pytest.mark.parametrize("option", [("--batch", 100_000_000), ("--width", 1_000_000), ("--blocks", 1000)])
def test_run_too_large_for_memory_is_rejected_immediately(option, refused, story_file):
    sizes = ("--width", 4096) if option[0] == "--blocks" else ()
    refused("train", story_file, "--steps", 2, *sizes, *option, words=["GB of memory", "--accumulation"])


def test_same_text_given_twice_is_rejected(refused, story_file):
    refused("train", story_file, story_file, words=["was given twice"])


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no endless device to read")
def test_endless_device_is_rejected(refused):
    refused("train", "/dev/zero", words=["is a device"])


def test_model_files_respect_the_umask(clearhead, story_file, tmp_path):
    before = os.umask(0o027)
    try:
        clearhead("train", story_file, "--out", "model", *SMALL)
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert modes == {0o640}


def test_binary_standard_input_is_rejected_while_reading(command, tmp_path):
    done = subprocess.run(
        [*command, "train", "-"], input=b"text\0" * 1000, capture_output=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 2
    assert b"standard input is not text" in done.stderr
    assert not list(Path(os.environ["TMPDIR"]).iterdir())


def test_sigterm_removes_temporary_files(command, tmp_path):
    process = subprocess.Popen(
        [*command, "train", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    process.stdin.write(b"Some text. " * 1000)
    process.stdin.flush()
    temporary = Path(os.environ["TMPDIR"])
    for _ in range(6000):  # importing torch is slow on a busy machine
        if list(temporary.glob("clearhead-*")):
            break
        time.sleep(0.05)
    assert list(temporary.glob("clearhead-*"))
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err == b"clearhead: stopped\n"
    assert not list(temporary.iterdir())


def test_ascii_output_replaces_unicode_with_question_marks(command, model_folder, tmp_path):
    (tmp_path / "run").mkdir()
    done = subprocess.run(
        [*command, "inspect", str(model_folder), "a b", "--head", "0"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"?" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device to write to")
def test_full_output_device_is_reported_as_a_user_error(command, model_folder, story_file):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*command, "eval", str(model_folder), str(story_file)],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=300,
        )
    assert done.returncode == 2
    assert done.stderr.startswith(b"clearhead: no space left for the output")
    assert done.stderr.count(b"\n") == 1
