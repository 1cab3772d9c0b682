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


def test_middle_of_a_large_table_is_left_out(clearhead):
    told = clearhead("lab", "attention", "--sequence", 50 * "01").out
    for shown in ("0 at 0", "1 at 19", "… 60 more rows: --csv prints all", "0 at 80", "1 at 99"):
        assert told.count(f"\n  {shown}") == 1, shown
    weights = told.partition("\nweights\n")[2].splitlines()
    assert weights[0].endswith(" 1 at 99")
    assert "0 at 0" in weights[0]
    assert weights[2] == "  … 88 more columns: --csv prints all"
    assert clearhead("lab", "attention", "--sequence", 50 * "01", "--csv").out.count("\nweights,") == 100


def test_invalid_arguments_are_rejected_with_a_one_line_error(refused):
    refused("lab", "attention", "--boost", "1000", words=["--boost 1000.0:", "0 to 100"])
    refused("lab", "attention", "--sequence", "abc", words=["expected digits 0 and 1"])
    refused("lab", "atention", words=["attention"])
    refused("lab", "attention", "--json", "--csv", words=["--json and --csv are mutually exclusive"])
    # Rejected before training, not after.
    said = refused("lab", "stream", "--figure", "stream.xyz", words=["stream.xyz ends in .xyz"])
    assert "trains" not in said
    refused("lab", "stream", "--figure", "no/stream.svg", words=["the folder no does not exist"])


def test_labs_inspect_the_built_in_model_by_default(clearhead, model_folder):
    result = clearhead("lab", "blank", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["findings"]["token"] == " her"
    assert "designed for" not in result.err
    other = clearhead("lab", "window", "--model", model_folder, "--prompt", "The cat", "--json")
    assert other.code == 0, other.err
    assert "this lab was designed for stories: clearhead lab window --model stories\n" in other.err


def test_unknown_model_is_rejected_before_anything_is_printed(refused):
    refused("lab", "window", "--model", "nosuch", words=["nosuch"])
