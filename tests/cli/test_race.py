"""`clearhead race`: races of a few seconds, one-line errors, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("work_clock")

SHORT = ["--minutes", "0.02", "--tokenizer", "char", "--device", "cpu", "--context", "64", "--tokens", "12"]


def test_race_produces_a_table_samples_and_a_figure(clearhead, story_file, tmp_path):
    done = clearhead("race", story_file, *SHORT, "--kind", "ngram", "--kind", "elman", "--figure", "race.svg")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split()[:4] == ["name", "bits", "per", "byte"]
    assert {line.split()[0] for line in lines[1:3]} == {"ngram", "elman"}
    assert "loss by position in the window, in bits per byte" in done.out
    assert "after '" in done.out
    drawn = (tmp_path / "race.svg").read_text()
    assert ">elman</text>" in drawn
    assert [path.name for path in tmp_path.iterdir()] == ["race.svg"]


def test_race_prints_json(clearhead, story_file, model_folder):
    done = clearhead(
        "race",
        story_file,
        *SHORT,
        "--kind",
        "ngram",
        "--model",
        model_folder,
        "--prompt",
        "The hen",
        "--json",
    )
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    assert printed["settings"]["prompt"] == "The hen"
    racers = printed["parts"][0]
    assert sorted(racers["rows"]) == sorted(["ngram", str(model_folder)])
    assert all(0 < row[racers["columns"].index("bits per byte")] < 8 for row in racers["values"])


def test_race_prints_csv(clearhead, story_file):
    done = clearhead("race", story_file, *SHORT, "--kind", "ngram", "--csv")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "part,row,column,value"
    assert "findings,best,,ngram" in lines
    assert any(line.startswith("racers,ngram,bits per byte,") for line in lines)


def test_invalid_arguments_are_rejected_with_a_one_line_error(refused, story_file):
    refused("race", "nowhere.txt", words=["nowhere.txt"])
    refused("race", story_file, "--minutes", "0", words=["--minutes 0.0:"])
    refused("race", story_file, "--tokens", "0", words=["--tokens 0:", "1 to 10000"])
    refused("race", story_file, "--json", "--csv", words=["--json and --csv are mutually exclusive"])
    refused("race", story_file, "--figure", "race.xyz", words=["race.xyz ends in .xyz"])
    refused("race", story_file, "--figure", "no/race.svg", words=["the folder no does not exist"])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.slow
def test_ctrl_c_leaves_nothing_behind(command, story_file, tree):
    before = tree()
    process = subprocess.Popen(
        [
            *command,
            "race",
            str(story_file),
            *SHORT,
            "--minutes",
            "5",
            "--kind",
            "lstm",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("lstm  "):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.splitlines()[-1] == "clearhead: stopped"
    assert out == ""
    assert tree() == before
