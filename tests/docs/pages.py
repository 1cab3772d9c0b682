"""The README and the pages of docs/ as lists of code blocks."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# Languages that are executed, and languages that are only shown: diagrams, and files that the reader creates.
EXECUTED, SHOWN = ("python", "sh"), ("text", "json", "toml")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class CodeBlock:
    """A code block with its language and the line of the page it begins at."""

    language: str
    code: str
    line: int

    def commands(self):
        """Return the commands of a shell block as lists of arguments, without comments."""
        lines = self.code.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def read_blocks(page):
    text = page.read_text(encoding="utf-8")
    return [
        CodeBlock(match[1], match[2], text[: match.start()].count("\n") + 1) for match in FENCE.finditer(text)
    ]


def page_name(page):
    return page.relative_to(ROOT).as_posix()
