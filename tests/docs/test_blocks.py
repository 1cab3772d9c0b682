"""Run every code block in the README and the docs, with the limits set in conftest.py."""

import re
import shutil
import sys
import warnings
from pathlib import Path

import pytest

import clearhead
from tests.docs.conftest import RACE_MINUTES
from tests.docs.pages import EXECUTED, PAGES, SHOWN, page_name, read_blocks
from tests.docs.shell import run_or_check

PAGES_WITH_CODE = [page for page in PAGES if any(block.language in EXECUTED for block in read_blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_code_block_has_a_known_language_and_parses(page):
    blocks = read_blocks(page)
    for block in blocks:
        assert block.language in EXECUTED + SHOWN, (
            f"{page.name}:{block.line}: unknown language {block.language!r}"
        )
    fences = re.findall(r"^\s*(?:```|~~~)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks), "a fence is indented or not closed"
    for block in blocks:
        if block.language == "python":
            compile(block.code, f"{page_name(page)}:{block.line}", "exec")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=page_name)
def test_code_blocks_run(page, workplace, brief, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["clearhead"])
    namespace = {"__name__": "page"}
    for block in read_blocks(page):
        place = f"{page_name(page)}:{block.line}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the text is short enough to be overfitted
            if block.language == "python":
                code = re.sub(r"\brace\((.*?)minutes=[\d.]+", rf"race(\1minutes={RACE_MINUTES}", block.code)
                delete(re.findall(r'\bout="([^"]+)"', code))
                exec(compile(code, place, "exec"), namespace)
            elif block.language == "sh":
                for words in block.commands():
                    run_command(place, words)


def run_command(place, words):
    if words[:2] == ["clearhead", "race"] and "--minutes" in words:
        words[words.index("--minutes") + 1] = str(RACE_MINUTES)
    if words[:2] == ["clearhead", "train"] and "--out" in words and "--resume" not in words:
        delete([words[words.index("--out") + 1]])
    try:
        run_or_check(words)
    except BaseException as error:
        raise AssertionError(f"{place}: {' '.join(words)}: {error!r}") from error


def delete(folders):
    """Delete folders that the code is about to create."""
    for folder in folders:
        if Path(folder).is_dir():
            shutil.rmtree(folder)


@pytest.mark.slow
def test_invalid_commands_fail(workplace, brief):
    """A failing command, an unknown option or an unknown program fails the test."""
    for command in ("clearhead generate runs/nothing", "clearhead serve runs/my --prot 1", "frobnicate x"):
        with pytest.raises(AssertionError):
            run_command("here", command.split())
    assert clearhead.load("runs/my").generate("Once", tokens=50).finish_reason == "length"
