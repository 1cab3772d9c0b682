"""The command in a separate process: exit codes, signals, a terminal, a closed pipe."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading

import pytest

from clearhead.language_model import load

SMALL = ("--blocks", "1", "--width", "32", "--heads", "1", "--context", "32", "--tokenizer", "char")


def test_empty_text_is_rejected(refused, process, tmp_path):
    (tmp_path / "novel.txt").touch()
    refused("train", "novel.txt", words=["novel.txt is empty"], through=process)


def test_missing_model_is_rejected(refused, process):
    refused("generate", "nowhere", words=["no such folder or file: nowhere"], through=process)


def test_damaged_weights_are_rejected(refused, process, copied_model, story_file):
    os.truncate(copied_model / "model.safetensors", 1000)
    words = ["model.safetensors", "copy it again"]
    refused("eval", copied_model, story_file, words=words, through=process)


def test_folder_that_contains_a_model_is_rejected(refused, process, copied_model, story_file):
    refused("train", story_file, "--out", "model", words=["already contains a model"], through=process)


def test_unknown_option_is_rejected(refused, process):
    refused("train", "--nonsense", words=["--nonsense; see clearhead train --help"], through=process)


def test_help_does_not_import_torch():
    code = (
        "import sys; from clearhead.cli import run; "
        "commands = [[], ['demo'], ['train'], ['generate'], ['fill'], ['eval'], ['pull'], "
        "['models'], ['serve'], ['explore']]; "
        "assert all(run([*command, '--help']) == 0 for command in commands); "
        "assert run(['--version']) == 0; "
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_stops_training_and_saves_the_model(command, number, story_file, tmp_path):
    arguments = ["train", story_file, "--minutes", "1", "--out", "model", "--json", *SMALL]
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as training:
        timer = threading.Timer(300, training.kill)
        timer.start()
        lines = []
        for line in training.stderr:
            lines.append(line)
            if "step " in line:
                training.send_signal(number)
                break
        lines += training.stderr
        out = training.stdout.read()
        training.wait()
        timer.cancel()
    assert training.returncode == 0, lines
    summary = json.loads(out)
    assert summary["steps_done"] < summary["recipe"]["steps"]
    done = summary["steps_done"]  # possibly only one on a busy machine
    steps = "1 step" if done == 1 else f"{done:,} steps"
    assert f"stopped after {steps}; run the same command with --resume to continue\n" in lines
    model = load(tmp_path / "model")
    assert model.training["steps_done"] == summary["steps_done"]
    assert model.generate("The", tokens=3)


def in_a_terminal(command, **environment):
    """Run a command in a 120-column terminal; return its exit code and everything it writes."""
    fcntl, pty, termios = (
        pytest.importorskip(name, reason="there are no pseudo-terminals here")
        for name in ("fcntl", "pty", "termios")
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    given = {**os.environ, "TERM": "xterm-256color", **environment}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=given) as started:
        os.close(theirs)
        timer = threading.Timer(300, started.kill)
        timer.start()
        seen = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # Linux raises this when the other end is closed
                break
            if not block:
                break
            seen += block
        started.wait()
        timer.cancel()
    os.close(ours)
    return started.returncode, seen.decode()


COLOR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")


def test_live_progress_line_respects_no_color(command, story_file, tmp_path):
    arguments = ["train", str(story_file), "--steps", "40", "--out", "model", *SMALL]
    code, seen = in_a_terminal([*command, *arguments], NO_COLOR="1")
    assert code == 0, seen
    line = r"step 40/40   loss \d+\.\d{3}   validation \d+\.\d{4}   [\d,]+ tokens/s   \d:\d\d left"
    assert re.search(line, seen), seen
    assert COLOR.search(seen) is None
    assert (tmp_path / "model" / "config.json").exists()


def test_training_lab_counts_steps_on_a_terminal(command):
    code, seen = in_a_terminal([*command, "lab", "stream", "--steps", "2", "--json"])
    assert code == 0, seen
    assert re.search(
        r"training for stream; this takes a while .*(?<!\d)2 steps   \d:\d\d", seen, re.DOTALL
    ), seen


@pytest.mark.slow
def test_reader_closing_the_pipe_early_is_not_an_error(model_folder):
    """The command runs without forking, so that Python's own startup and shutdown are included."""
    arguments = [sys.executable, "-m", "clearhead", "generate", model_folder, "The", "--tokens", "2000"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writing:
        assert writing.stdout.read(5)
        writing.stdout.close()
        complaint = writing.stderr.read()
        writing.wait(timeout=300)
    assert (writing.returncode, complaint) == (0, "")
