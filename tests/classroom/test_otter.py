"""The assignment in Otter, as a teacher would use it: `otter assign`, then `otter run` on two submissions."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from clearhead.classroom.course import Course, write_course

pytestmark = pytest.mark.slow


@pytest.fixture
def otter(tmp_path, monkeypatch):
    """Run an Otter command in a folder."""
    pytest.importorskip(
        "otter", reason="otter-grader is not installed: see CONTRIBUTING.md", exc_type=ImportError
    )
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
        (tmp_path / name.lower()).mkdir()
    sources = [str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sources)))
    program = shutil.which("otter")
    if program is None:
        pytest.skip("otter is not on the PATH: activate its environment")

    def run(folder, *arguments):
        done = subprocess.run([program, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]

    return run


def test_each_student_is_graded_on_their_own_data(otter, tmp_path):
    folder = tmp_path / "k"
    write_course(Course(5, ("anna", "ben")), folder)
    otter(folder / "otter", "assign", "lectures.ipynb", "dist")
    student = (folder / "otter" / "dist" / "student" / "lectures.ipynb").read_text()
    assert "BEGIN SOLUTION" not in student
    assert "def reference" not in student
    (autograder,) = (folder / "otter" / "dist" / "autograder").glob("*.zip")
    scores = {}
    for who, source in {"anna": "solutions/anna", "ben": "notebooks/ben"}.items():
        place = tmp_path / who
        place.mkdir()
        shutil.copy(folder / f"{source}.ipynb", place / "lectures.ipynb")
        otter(place, "run", "-a", autograder, "lectures.ipynb")
        tests = json.loads((place / "results.json").read_text())["tests"]
        scores[who] = [sum(each.get(name, 0) for each in tests) for name in ("score", "max_score")]
    assert scores == {"anna": [36, 36], "ben": [0, 36]}
