"""Every block of code in README and docs, run as it stands, but for what conftest.py makes short."""

import re
import shutil
import sys
import warnings
from pathlib import Path

import pytest

import clearhead
from tests.docs.conftest import RACE
from tests.docs.pages import PAGES, READ, RUN, name_of, read_blocks
from tests.docs.shell import perform

WITH_CODE = [page for page in PAGES if any(block.language in RUN for block in read_blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page):
    blocks = read_blocks(page)
    for block in blocks:
        assert block.language in RUN + READ, f"{page.name}:{block.line}: a block of {block.language!r}"
    fences = re.findall(r"^\s*(?:```|~~~)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks), "a fence that is not at the start of its line, or not closed"


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_its_code_runs(page, workplace, brief, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["clearhead"])
    known = {"__name__": "page"}
    for block in read_blocks(page):
        place = f"{name_of(page)}:{block.line}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that the text is short, or was read too often
            if block.language == "python":
                code = re.sub(r"\brace\((.*?)minutes=[\d.]+", rf"race(\1minutes={RACE}", block.code)
                free(re.findall(r'\bout="([^"]+)"', code))
                exec(compile(code, place, "exec"), known)
            elif block.language == "sh":
                for words in block.commands():
                    run_command(place, words)


def run_command(place, words):
    if words[:2] == ["clearhead", "race"] and "--minutes" in words:
        words[words.index("--minutes") + 1] = str(RACE)
    if words[:2] == ["clearhead", "train"] and "--out" in words and "--resume" not in words:
        free([words[words.index("--out") + 1]])
    try:
        perform(words)
    except BaseException as error:
        raise AssertionError(f"{place}: {' '.join(words)}: {error!r}") from error


def free(folders):
    """A reader trains there for the first time."""
    for folder in folders:
        if Path(folder).is_dir():
            shutil.rmtree(folder)


def test_what_is_wrong_is_found(workplace, brief):
    """The test itself: a command that fails, an option that is not there, a program nobody knows."""
    for wrong in ("clearhead generate runs/nothing", "clearhead serve runs/my --prot 1", "frobnicate x"):
        with pytest.raises(AssertionError):
            run_command("here", wrong.split())
    assert clearhead.load("runs/my").generate("Once", tokens=50).finish == "length"
