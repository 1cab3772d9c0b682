"""The docs site as `make docs` builds it: without a warning, a dead link, or anything from another host."""

import re
import shutil
import subprocess
import sys
import tomllib
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.html import Html
from tests.docs.pages import PAGES, ROOT, name_of
from tools import reference

pytest.importorskip("zensical", reason="there is no zensical: pip install -c constraints-dev.txt '.[dev]'")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """What the builder said, and the folder it made."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("reference"))
    shutil.copy(ROOT / "zensical.toml", folder)
    reference.main(folder / "docs" / "reference")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done, folder / "build" / "site"


@pytest.fixture(scope="module")
def pages(built):
    _, site = built
    return {path: Html(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_it_is_built_without_a_warning(built):
    done, site = built
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "warning" not in said.lower(), said
    assert (site / "index.html").is_file()


def test_every_page_is_in_it_and_can_be_found(pages):
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    named = {page for part in nav for under in part.values() for page in under}
    here = {path.relative_to(ROOT / "docs").as_posix() for path in PAGES if path.parent == ROOT / "docs"}
    assert named == here | {"reference/commands.md", "reference/python.md"}
    made = {path.name for path in pages}
    assert {name.rpartition("/")[2].replace(".md", ".html") for name in named} <= made


def test_every_link_leads_somewhere(built, pages):
    _, site = built
    followed = 0
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            above = site if parts.path.startswith("/") else path.parent
            target = (above / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in pages:
                known = pages[target].names | {"__search", "__drawer", "__comments"}
                assert unquote(parts.fragment) in known, f"{path.name}: {link}"
            followed += 1
    assert followed > 500


def test_nothing_comes_from_another_host(built, pages):
    _, site = built
    for path, page in pages.items():
        foreign = [load for load in page.loads if re.match(r"(https?:)?//", load)]
        assert not foreign, f"{path.name} loads {foreign}"
    for path in site.rglob("*.css"):
        found = re.findall(
            r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]*)", path.read_text(encoding="utf-8")
        )
        assert not found, f"{path.name} loads {found}"


def test_the_reference_knows_every_command_and_public_name(built):
    _, site = built
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    names = (site / "reference" / "python.html").read_text(encoding="utf-8")
    from clearhead import __all__
    from clearhead.cli.app import app

    for command in app.registered_commands:
        assert f'id="clearhead-{command.name}"' in commands
    for name in __all__:
        assert f'id="ch{name.lower()}"' in names, name


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == ROOT], ids=name_of)
def test_links_of_pages_outside_the_site(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        parts = urlsplit(link)
        if not parts.scheme and parts.path:
            assert (page.parent / parts.path).exists(), link
