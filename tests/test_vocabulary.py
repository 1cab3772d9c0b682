"""Consistent terminology: names and phrases that the project has retired must not come back."""

import ast
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = (
    *("src", "web", "bench", "tools", "tests", "zensical.toml"),
    *("hatch_build.py", "Makefile", "pyproject.toml", ".pre-commit-config.yaml", ".ci"),
)
TEXT = (*CODE, "docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md", ".github")
GERMAN = re.compile(r"(\.|/)de\.ts$")
SUFFIXES = {".py", ".ts", ".js", ".svelte", ".css", ".html", ".md", ".ipynb", ".toml", ".yml", ".yaml", ""}

# Identifiers replaced by standard names: AttentionMask, KVCache, Sampler, Scheduler, TraceCache, …
NAMES = re.compile(
    r"\b(Sights?|sights?|Drawers?|drawers?|ReadsOn|Ticket|ticket|Desk|desk|Shelf|shelf|Door|Refused"
    r"|Workers|Stretch|StretchKind|KeptRun|ShiftingReader|QuickSteps|is_quick|first_half|second_half|after_norm"
    r"|Slots|Drawn|Recording|Smooth|rooms|rotary_stretch|even_rows|even_out|hindsight|parted_loss|word_loss|restraints?|interview|kept_views|checkup"
    r"|_told|whole_model|_?check_room|train_in_folder|optimisers?"
    r"|can_go_on|nextWords|offeredWords|NextWordPicker|nextWord(Logits|Probabilities)|(page|location)\.word|MOST_WORDS)\b"
)
RETIRED_TYPES = {"Collection", "Keeps", "Left", "Reader", "Rows", "Service", "Ticket"}
PHRASES = re.compile(
    r"\b(go|goes|going|gone|went) on (with|from)\b|\b(write|writes|writing) on from\b|\b(edits?|changes?) in force\b"
    r"|\bmanieth\b|as chance has it|\blook(s|ing)? into\b|\bthe open (head|part)\b|\bsees? both ways\b|\bbegun with\b"
)
BRITISH = re.compile(
    r"colour|neighbour|(normal|initial|optim|quant|recogn|organ|token|serial|summar|penal)is(e|ed|er|es|ing|ation)\b"
    r"|licence|catalogue|behaviour|favour|\bcentred?\b|\bgrey\b|\blabelled\b|\b(after|to|back|up|down|out)wards\b"
)


def tracked(*places: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", "-z", "--", *places], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if names.returncode != 0:
        pytest.skip("not a git checkout, so the project's files are unknown")
    found = [ROOT / name for name in names.stdout.split("\0") if name]
    return [
        path for path in found if path.suffix in SUFFIXES and "generated" not in path.parts and path.is_file()
    ]


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def occurrences(pattern: re.Pattern[str], texts: dict[Path, str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in texts.items()
        for match in pattern.finditer(text)
    ]


def lowercase(paths: list[Path]) -> dict[Path, str]:
    """The texts of the files in lowercase: several times faster than ignoring case in each search."""
    return {path: read(path).lower() for path in paths}


def test_retired_names_do_not_come_back():
    paths = [path for path in tracked(*TEXT) if path != Path(__file__)]
    assert len(paths) > 300
    assert not occurrences(NAMES, {path: read(path) for path in paths})


def test_retired_phrases_do_not_come_back():
    paths = [path for path in tracked(*TEXT) if not GERMAN.search(path.as_posix())]
    assert not occurrences(PHRASES, lowercase([path for path in paths if path != Path(__file__)]))


def declared_types(tree: ast.Module) -> list[str]:
    """The public classes in a module, and the aliases and type variables at its top level.

    An alias is a name in CamelCase that something is assigned to; `T` may be a type variable in many modules.
    """
    classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    assigned = [
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    aliases = [name for name in assigned if name[0].isupper() and not name.isupper()]
    return [name for name in classes + aliases if not name.startswith("_")]


def test_no_two_types_share_a_name():
    names = Counter(
        name
        for path in tracked("src", "bench", "tools")
        if path.suffix == ".py"
        for name in declared_types(ast.parse(path.read_text(encoding="utf-8")))
    )
    assert len(names) > 200
    assert [name for name, count in names.items() if count > 1] == []
    assert not RETIRED_TYPES & set(names)


def test_no_two_types_of_the_page_share_a_name():
    declaration = re.compile(
        r"^ *(?:export )?(?:(?:interface|class) (\w+)|type (\w+)(?:<.*>)? =)", re.MULTILINE
    )
    paths = [path for path in tracked("web/src") if path.suffix in (".ts", ".svelte")]
    found = [match for path in paths for match in declaration.findall(path.read_text(encoding="utf-8"))]
    names = Counter(one or other for one, other in found)
    del names["Props"]  # of a component
    assert len(names) > 100
    assert [name for name, count in names.items() if count > 1] == []


def test_types_are_found():
    tree = ast.parse(
        "class A:\n  class B: ...\nName = dict[str, int]\nWord = TypeVar('Word')\nT, MOST = 1, 2"
    )
    assert declared_types(tree) == ["A", "B", "Name", "Word"]


def test_spelling_is_american():
    places = [path for path in tracked(*TEXT, "tests") if not GERMAN.search(path.as_posix())]
    assert not occurrences(BRITISH, lowercase([path for path in places if path != Path(__file__)]))


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (NAMES, "from clearhead.model.sight import Sight"),
        (PHRASES, "resume goes on with it"),
        (BRITISH, "the colour"),
    ],
)
def test_patterns_match_known_violations(pattern, line):
    assert pattern.search(line)
