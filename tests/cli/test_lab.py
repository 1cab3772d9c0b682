"""Labs on the command line."""

import json

import pytest

from clearhead.labs.catalog import LABS


def test_labs_are_listed(clearhead):
    listed = clearhead("lab", "--help").out
    assert all(name in listed for name in LABS)


def test_lab_settings_are_options(clearhead):
    printed = json.loads(clearhead("lab", "attention", "--sequence", "0010", "--boost", "10", "--json").out)
    assert printed["settings"]["boost"] == 10
    assert printed["findings"]["weight on the target"] == pytest.approx(0.99986, abs=5e-6)


def test_lab_gives_numbers_a_question_and_a_figure(clearhead, tmp_path):
    told = clearhead("lab", "attention", "--figure", tmp_path / "a.svg").out
    assert "0.47537" in told
    assert told.rstrip().endswith("?")
    assert "<svg" in (tmp_path / "a.svg").read_text()
    assert clearhead("lab", "attention", "--csv").out.startswith("part,row,column,value\n")


def test_invalid_arguments_are_rejected_with_a_one_line_error(refused):
    refused("lab", "attention", "--boost", "1000", words=["boost = 1000.0", "0 to 100"])
    refused("lab", "attention", "--sequence", "abc", words=["expected digits 0 and 1"])
    refused("lab", "atention", words=["attention"])
    # Rejected before training, not after.
    said = refused("lab", "stream", "--figure", "stream.xyz", words=["stream.xyz ends in .xyz"])
    assert "trains" not in said
    refused("lab", "stream", "--figure", "no/stream.svg", words=["the folder no does not exist"])
