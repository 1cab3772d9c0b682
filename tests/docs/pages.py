"""README and the pages of docs/ as the blocks of code that stand in them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# What is run, and what is only read: drawings, and files that a reader writes.
RUN, READ = ("python", "sh"), ("text", "json", "toml")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Code, what it is written in, and the line of the page before it."""

    language: str
    code: str
    line: int

    def commands(self):
        """Of a shell's block, each command as a list of words, without comments, broken lines joined."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def read_blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[1], found[2], text[: found.start()].count("\n") + 1) for found in FENCE.finditer(text)
    ]


def name_of(page):
    return page.relative_to(ROOT).as_posix()
