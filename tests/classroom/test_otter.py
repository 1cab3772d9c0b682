"""The assignment in Otter, as a teacher would use it: `otter assign`, then `otter run` on two submissions."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

import pytest

from clearhead.classroom.course import Course, write_course

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
OTTER = "otter-grader==7.0.0"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The `otter` command: the installed one, or one in an environment that adds Otter to the installed packages."""
    if find_spec("otter") is not None and (installed := shutil.which("otter")) is not None:
        return Path(installed)
    if find_spec("pip") is None:
        pytest.skip("otter-grader is not installed, and neither is pip")
    folder = tmp_path_factory.mktemp("otter")
    venv.create(folder)
    python = folder / "bin" / "python"
    places = {"base": folder, "platbase": folder}
    added = Path(sysconfig.get_path("purelib", "venv", places))
    (added / "installed.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", python, "--retries", "1", "--timeout", "30"]
    command = [*pip, "install", "-q", "-c", "constraints.txt", OTTER]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        assert "ResolutionImpossible" not in done.stderr, done.stderr[-3000:]
        pytest.skip(f"otter-grader cannot be downloaded: {done.stderr.strip().splitlines()[-1]}")
    return folder / "bin" / "otter"


@pytest.fixture
def otter(program, tmp_path, monkeypatch):
    """Run an Otter command in a folder."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
        (tmp_path / name.lower()).mkdir()
    sources = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sources)))
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)

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
