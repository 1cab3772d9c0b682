"""What a model is called."""

from pathlib import Path

import pytest

from clearhead.formats.opening import name_of


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("runs/my", "my"),
        ("runs/my/", "my"),
        (Path("models/SmolLM2-135M.Q8_0.gguf"), "SmolLM2-135M.Q8_0"),
        ("smollm2", "smollm2"),
        ("HuggingFaceTB/SmolLM2-135M", "SmolLM2-135M"),
        ("a b & c", "a-b-c"),
        ("…", "model"),
    ],
)
def test_the_last_part_of_where_it_comes_from(source, name):
    assert name_of(source) == name


def test_of_a_folder_without_a_name_the_one_it_has(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert name_of(".") == "here"


def test_snapshots_have_their_step_with_it():
    assert name_of("runs/my", 100) == "my@100"
