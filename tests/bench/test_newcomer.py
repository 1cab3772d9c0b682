"""Tests for the README walkthrough: its list of commands, and its short mode using only the wheel."""

import pytest

from bench.newcomer import ROOT, readme_commands, shorten
from tests.bench.process import run_short

README = """
```
make demo    # a minute
$ clearhead train my.txt --minutes 3     # a model
clearhead train my.txt --kind lstm
```
```python
clearhead is not read here
```
```sh
python -m bench.train
clearhead explore runs/my
```
"""


def test_commands_are_read_from_shell_blocks():
    assert readme_commands(README, 0.2) == [
        "make demo",
        "clearhead train my.txt --minutes 0.2",
        "clearhead train my.txt --kind lstm --minutes 0.2",
        "clearhead explore runs/my",
    ]


def test_readme_covers_the_main_commands():
    commands = readme_commands((ROOT / "README.md").read_text(encoding="utf-8"), 0.2)
    assert {"make demo", "make test"} <= set(commands)
    covered = {words[1] for words in map(str.split, commands) if words[0] == "clearhead"}
    assert {"train", "generate", "inspect", "explore", "eval"} <= covered


@pytest.mark.parametrize(
    ("command", "short"),
    [
        ("clearhead train my.txt --steps 5000", "clearhead train my.txt --steps 20"),
        ("clearhead train my.txt --kind ngram --order 5", "clearhead train my.txt --kind ngram --order 5"),
        ("clearhead generate runs/my", "clearhead generate runs/my"),
    ],
)
def test_training_commands_are_shortened(command, short):
    assert shorten(command, 0.2) == short


@pytest.mark.slow
def test_wheel_trains_inspects_and_serves(tmp_path):
    report = run_short("newcomer", "--folder", tmp_path / "path")
    assert report["failed"] == []
    assert (report["page_files_in_wheel"] > 5) == report["page_built"]
    assert (tmp_path / "path" / "work" / "runs" / "my" / "model.safetensors").is_file()
    commands = [step["command"] for step in report["steps"]]
    assert any(command.startswith("clearhead demo") for command in commands)
    assert ("clearhead explore runs/my" in commands) == report["page_built"]
