"""The code blocks of the README and the pages in docs/."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# Languages that are executed, and those that are only shown: diagrams, and files the reader creates.
EXECUTED, SHOWN = ("python", "sh"), ("text", "json", "toml", "yaml")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class CodeBlock:
    """A code block, its language, and the line of the page on which it begins."""

    language: str
    code: str
    line: int

    def commands(self):
        """Return the commands of a shell block as argument lists, without comments."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def read_blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        CodeBlock(match[1], match[2], text[: match.start()].count("\n") + 1) for match in FENCE.finditer(text)
    ]


def page_name(page):
    return page.relative_to(ROOT).as_posix()
