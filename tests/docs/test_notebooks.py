"""Execute the notebooks in the docs from first cell to last; each asserts its own claims."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from clearhead.lectures.questions import read_questions

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
CELL_TIMEOUT = 600  # seconds, with other tests running on the same machine


def read(path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install '.[dev]'")
    return nbformat.read(path, as_version=4)


def test_all_notebooks_are_listed():
    lectures = ["lecture_000", "lecture_001", "lecture_002"]
    names = ["first_look", "induction_head", *lectures, "patch_a_prompt", "watch_a_head_form"]
    assert [path.stem for path in NOTEBOOKS] == names


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.skipif(find_spec("nbclient") is None, reason="nbclient is not installed: pip install '.[dev]'")
def test_notebook_runs(path, tmp_path, monkeypatch):
    from nbclient import NotebookClient

    for name in (
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
        "MPLCONFIGDIR",
    ):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONWARNINGS", "error::UserWarning:clearhead")
    sources = [str(DOCS.parent / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sources)))
    notebook = read(path)
    NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
        extra_arguments=["--InteractiveShell.colors=NoColor"],
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert outputs
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_has_no_outputs_and_asserts_its_claims(path):
    cells = read(path).cells
    code = [cell for cell in cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert any("assert " in cell.source for cell in code)
    links = [link for cell in cells for link in re.findall(r"\]\(([^)#]+)", cell.source) if cell not in code]
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("lecture", ["000", "001", "002"])
def test_lecture_asks_the_questions_of_page_and_terminal(lecture):
    text = "\n".join(cell.source for cell in read(DOCS / "notebooks" / f"lecture_{lecture}.ipynb").cells)
    for stop, texts in read_questions().items():
        if stop.startswith(lecture):
            asked = "\n- ".join([texts["question"] + "\n" * ("options" in texts), *texts.get("options", [])])
            assert f"## {stop} {texts['title']}\n" in text
            assert f"**Question.** {asked}" in text, stop
