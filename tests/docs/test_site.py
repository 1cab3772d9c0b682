"""The documentation site built by `make docs`: no warnings, no dead links, nothing from other hosts."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from urllib.parse import unquote, urlsplit

import pytest

from clearhead.export.live_page import save_live_html
from clearhead.language_model import load
from clearhead.page.assets import has_bundles
from tests.docs.html import HtmlPage
from tests.docs.pages import PAGES, ROOT, page_name
from tools import reference

pytest.importorskip(
    "zensical", reason="zensical is not installed: pip install -c constraints-dev.txt '.[dev]'"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the finished build process and the site folder."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("reference", "live.html"))
    shutil.copy(ROOT / "zensical.toml", folder)
    reference.main(folder / "docs" / "reference")
    if not has_bundles():
        pytest.skip("the page is not built: run `pip install .` with npm installed")
    save_live_html(load("stories"), folder / "docs" / "live.html", "float16")
    process = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return process, folder / "build" / "site"


@pytest.fixture(scope="module")
def pages(built):
    _, site = built
    return {path: HtmlPage(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


@pytest.mark.slow
def test_site_builds_without_warnings(built):
    process, site = built
    output = process.stdout + process.stderr
    assert process.returncode == 0, output
    assert "warning" not in output.lower(), output
    assert (site / "index.html").is_file()


@pytest.mark.slow
def test_every_page_is_in_the_navigation(pages):
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    in_nav = {page for section in nav for names in section.values() for page in names}
    on_disk = {path.relative_to(ROOT / "docs").as_posix() for path in PAGES if path.parent == ROOT / "docs"}
    assert in_nav == on_disk | {"reference/commands.md", "reference/python.md"}
    built_names = {path.name for path in pages}
    assert {name.rpartition("/")[2].replace(".md", ".html") for name in in_nav} <= built_names


@pytest.mark.slow
def test_every_link_resolves(built, pages):
    _, site = built
    checked = 0
    for path, page in pages.items():
        for link in [*page.links, *page.resources]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            base = site if parts.path.startswith("/") else path.parent
            target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in pages:
                anchors = pages[target].anchors | {"__search", "__drawer", "__comments"}
                assert unquote(parts.fragment) in anchors, f"{path.name}: {link}"
            checked += 1
    assert checked > 500


@pytest.mark.slow
def test_nothing_loads_from_other_hosts(built, pages):
    _, site = built
    for path, page in pages.items():
        foreign = [url for url in page.resources if re.match(r"(https?:)?//", url)]
        assert not foreign, f"{path.name} loads {foreign}"
    for path in site.rglob("*.css"):
        foreign = re.findall(
            r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')]*)", path.read_text(encoding="utf-8")
        )
        assert not foreign, f"{path.name} loads {foreign}"


@pytest.mark.slow
def test_reference_lists_every_command_and_public_name(built):
    _, site = built
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    names = (site / "reference" / "python.html").read_text(encoding="utf-8")
    from clearhead import __all__
    from clearhead.cli.app import app

    for command in app.registered_commands:
        assert f'id="clearhead-{command.name}"' in commands
    for name in __all__:
        assert f'id="ch{name.lower()}"' in names, name


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent == ROOT], ids=page_name)
def test_links_on_pages_outside_the_site_resolve(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        parts = urlsplit(link)
        if not parts.scheme and parts.path:
            assert (page.parent / parts.path).exists(), link


@pytest.mark.parametrize("page", [*PAGES, ROOT / "RELEASING.md"], ids=page_name)
def test_files_and_modules_named_on_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"`([\w./-]+\.(?:py|ts|svelte))`", text):
        if "foo" in name.lower():  # placeholder for a file the reader adds
            continue
        folders = (ROOT, ROOT / "src" / "clearhead", ROOT / "web" / "src")
        exists = any((folder / name).is_file() for folder in folders)
        assert exists or any(_find(name, folder) for folder in ("src", "tests", "web/src")), name
    for name in re.findall(r"python -m\s+((?:bench|tools|clearhead)[\w.]*)", text):
        assert importlib.util.find_spec(name), name


def _find(name, folder):
    """Return a file with this name at any depth, if the name includes no folder."""
    return "/" not in name and next((ROOT / folder).rglob(name), None)
