"""The assignment in nbgrader, as a teacher would use it: generated, handed in, autograded and exported."""

import csv
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from clearhead.classroom.course import Course, write_course

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("nbgrader") is None, reason="nbgrader is not installed: pip install '.[dev]'"
    ),
]


@pytest.fixture
def nbgrader(tmp_path, monkeypatch):
    """Run an nbgrader command in a folder."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
        (tmp_path / name.lower()).mkdir()
    sources = [str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sources)))
    # nbgrader runs alembic, which is installed next to Python.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)

    def run(folder, *arguments):
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments], cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]

    return run


def test_each_student_is_graded_on_their_own_data(nbgrader, tmp_path):
    folder = tmp_path / "k"
    write_course(Course(5, ("anna", "ben")), folder)
    course = folder / "nbgrader"
    nbgrader(course, "generate_assignment", "lectures")
    released = (course / "release" / "lectures" / "lectures.ipynb").read_text()
    assert "reference()" not in released
    assert "SOLUTION" not in released
    for student, source in {"anna": "solutions/anna", "ben": "notebooks/ben"}.items():
        place = course / "submitted" / student / "lectures"
        place.mkdir(parents=True)
        shutil.copy(folder / f"{source}.ipynb", place / "lectures.ipynb")
    nbgrader(course, "autograde", "lectures")
    nbgrader(course, "export")
    with (course / "grades.csv").open(newline="") as file:
        rows = {
            row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)
        }
    assert rows == {"anna": (36, 36), "ben": (0, 36)}
