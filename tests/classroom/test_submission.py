"""Reading what was handed in: cells by exercise, and files that are not notebooks."""

import json

import pytest

from clearhead.classroom.exercises import EXERCISES
from clearhead.classroom.submission import find_submissions, read_submission, split
from clearhead.errors import UserError


def code(source, **metadata):
    return {"cell_type": "code", "metadata": metadata, "source": source}


def notebook(*cells):
    return {"nbformat": 4, "cells": list(cells)}


def mark(name, role="answer"):
    return {"clearhead": {"exercise": name, "role": role}}


def test_cells_go_to_the_exercise_they_are_marked_for():
    document = notebook(
        code("import math"),
        code("x = 1", **mark("layer-norm", "data")),
        code(["def layer_norm(x, g, b):\n", "    return x"], **mark("layer-norm")),
        code("y = layer_norm"),
        code("assert True", **mark("layer-norm", "test")),
        {"cell_type": "markdown", "source": "boost = 3"},
        code("boost = 3", **mark("boosted-keys")),
    )
    found = split(document, EXERCISES)
    assert found.preamble == ["import math"]
    assert found.cells == {
        "layer-norm": ["def layer_norm(x, g, b):\n    return x", "y = layer_norm"],
        "boosted-keys": ["boost = 3"],
    }


def test_cells_without_marks_are_found_by_the_name_they_define():
    document = notebook(
        code("%pip list\nboost = 3"), code("def one_head(*_): pass"), code("2 +"), code("boost = 4")
    )
    assert split(document, EXERCISES).cells == {
        "boosted-keys": ["%pip list\nboost = 3", "boost = 4"],
        "one-head": ["def one_head(*_): pass", "2 +"],
    }


@pytest.mark.parametrize(
    "document",
    [{}, {"nbformat": 3, "worksheets": []}, {"nbformat": 4}, {"nbformat": 4, "cells": {}}],
)
def test_other_documents_are_not_notebooks(document):
    with pytest.raises(UserError, match="not a notebook of format 4"):
        split(document, EXERCISES)


@pytest.mark.parametrize(
    "cell",
    [3, {}, code(3), code([3]), {"cell_type": "code", "source": "", "metadata": 3}, code("", clearhead=3),
     code("", clearhead={"exercise": ["x"], "role": {}})],
)  # fmt: skip
def test_damaged_cells_do_no_harm(cell):
    split(notebook(cell), EXERCISES)


def test_each_unreadable_file_gives_a_one_line_error(tmp_path):
    (tmp_path / "real.ipynb").write_text(json.dumps(notebook()))
    bad = {
        "text.txt": "hello",
        "empty.ipynb": "",
        "broken.ipynb": "{",
        "list.ipynb": "[]",
        "deep.ipynb": "[" * 10**6,
        "huge.ipynb": " " * (9 * 2**20),
        "binary.ipynb": None,
    }
    for name, text in bad.items():
        (tmp_path / name).write_bytes(b"\xff\xfe\x00" if text is None else text.encode())
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "real.ipynb")
    (tmp_path / "two").mkdir()
    for name in ("a", "b"):
        (tmp_path / "two" / f"{name}.ipynb").write_text("{}")
    (tmp_path / "nothing").mkdir()
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link.ipynb").symlink_to("/etc/passwd")
    (tmp_path / "folder.ipynb").mkdir()
    (tmp_path / ".DS_Store").write_text("")
    found, others = find_submissions(tmp_path)
    assert others == ["nothing", "text.txt"]  # and without .DS_Store
    assert len(found) == len(bad) + 4
    errors = {}
    for each in found:
        try:
            read_submission(each.path, EXERCISES)
        except UserError as error:
            errors[each.path.name] = str(error)
    assert {each.path.name for each in found} - set(errors) == {"real.ipynb"}
    assert all("\n" not in error and len(error) < 400 for error in errors.values())
    assert "is a link" in errors["link.ipynb"]
    assert "is a link" in errors["inside"]
    assert "2 notebooks" in errors["two"]
    assert "at most" in errors["huge.ipynb"]


def test_file_names_are_made_printable(tmp_path):
    (tmp_path / "a\x1b[31m\nb.ipynb").write_text("{}")
    assert [each.student for each in find_submissions(tmp_path)[0]] == ["a [31m b"]


def test_student_is_the_name_of_the_file_or_folder(tmp_path):
    (tmp_path / "anna.ipynb").write_text("{}")
    (tmp_path / "ben").mkdir()
    (tmp_path / "ben" / "any.ipynb").write_text("{}")
    assert [each.student for each in find_submissions(tmp_path)[0]] == ["anna", "ben"]
    with pytest.raises(UserError, match="no such folder"):
        find_submissions(tmp_path / "none")


def test_student_names_ignore_case_and_other_files_are_not_graded(tmp_path):
    for name in ("ANNA.ipynb", "roster.csv", "clara.txt", "dora.ipynb"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "ben").mkdir()
    (tmp_path / "archive").mkdir()
    found, others = find_submissions(tmp_path, ("Anna", "Ben", "Clara"))
    assert [each.student for each in found] == ["Anna", "Ben", "Clara", "dora"]
    assert others == ["archive", "roster.csv"]
    for each, error in zip(found[1:3], ("0 notebooks", "not a notebook"), strict=True):
        with pytest.raises(UserError, match=error):
            read_submission(each.path, EXERCISES)
