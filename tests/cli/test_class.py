"""`clearhead class new` and `clearhead class grade`."""

import json
import os
import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="grading forks a process, which this system cannot"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A class of two students."""
    from clearhead.classroom.course import Course, write_course

    folder = tmp_path_factory.mktemp("class") / "k"
    write_course(Course(11, ("anna", "ben")), folder)
    return folder


@pytest.mark.slow
def test_a_class_is_made_and_graded(clearhead):
    Path("students.txt").write_text("anna\nben\n")
    result = clearhead("class", "new", "k", "--seed", 11, "--students", "students.txt")
    assert result.code == 0
    assert "2 notebooks to hand out" in result.out
    shutil.copy("k/solutions/anna.ipynb", "k/submissions/Anna.ipynb")
    for name in "abcdefg":
        Path(f"k/submissions/{name}.csv").touch()
    result = clearhead("class", "grade", "k", "--timeout", 300, "--jobs", 1)
    assert result.code == 0, result.err
    assert "not notebooks: a.csv, b.csv, c.csv, d.csv, e.csv and 2 more\n" in result.err
    assert "anna      36/36\n" in result.out
    assert "ben        0/36  no submission\n" in result.out
    assert Path("k/grades.csv").read_text().splitlines()[1].startswith("anna,36,2,2,4")
    assert len(Path("k/reasons.csv").read_text().splitlines()) == 25
    assert json.loads(Path("k/grades.json").read_text())["students"][0]["points"] == 36


@pytest.mark.slow
def test_reasons_are_shown_for_a_single_submission(clearhead, made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "k")
    (folder / "class.json").write_text(json.dumps({"format": 1, "seed": 11, "students": []}))
    (folder / "submissions" / "mine.ipynb").write_text('{"nbformat": 4, "cells": []}')
    result = clearhead("class", "grade", folder, "--jobs", 1)
    lines = [line.split(maxsplit=2) for line in result.out.splitlines()]
    assert ["one-head", "0", "missing: the notebook has no cell for this exercise"] in lines
    printed = clearhead("class", "grade", folder, "--json", "--jobs", 1).out
    assert json.loads(printed)["students"][0]["student"] == "mine"


def test_folder_without_submissions(clearhead, made, tmp_path):
    folder = shutil.copytree(made, tmp_path / "k")
    (folder / "class.json").write_text(json.dumps({"format": 1, "seed": 11, "students": []}))
    assert "no submissions were found" in clearhead("class", "grade", folder).out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["new", "k"], ["--seed"]),
        (["new", "k", "--seed", "-1"], ["--seed -1", "expected a number from 0"]),
        (["new", "k", "--seed", "1", "--students", "none.txt"], ["no such file: none.txt"]),
        (["new", "full", "--seed", "1"], ["full already exists"]),
        (["new", "k", "--seed", "1", "--students", "bad.txt"], ["'../x' cannot be used as a file name"]),
        (["grade", "nowhere"], ["no such folder: nowhere"]),
        (["grade", "full"], ["is not a class"]),
        (["grade", "k", "--timeout", "0"], ["--timeout 0", "1 to 3600"]),
        (["grade", "k", "--memory", "1"], ["--memory 1", "2 to 1024"]),
        (["grade", "k", "--jobs", "-1"], ["--jobs -1"]),
    ],
    ids=" ".join,
)
def test_errors_are_one_line(arguments, words, refused):
    Path("full").mkdir()
    Path("full/mine.txt").write_text("x")
    Path("bad.txt").write_text("../x\n")
    refused("class", *arguments, words=words)


def test_config_file_cannot_name_files(refused, made):
    Path("clearhead.toml").write_text('[class.grade]\nsubmissions = "elsewhere"\n')
    refused("class", "grade", made, words=["submissions cannot be set in a file"])


def test_missing_submissions_folder(refused, made):
    refused("class", "grade", made, "--submissions", "nowhere", words=["no such folder: nowhere"])
