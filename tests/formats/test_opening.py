"""Model names derived from their source."""

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
def test_name_is_the_last_part_of_the_source(source, name):
    assert name_of(source) == name


def test_current_folder_is_resolved_to_its_name(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert name_of(".") == "here"


def test_snapshot_names_include_the_step():
    assert name_of("runs/my", 100) == "my@100"
