"""The newcomer's path: from a clean clone, in a fresh environment, each step as the README has it.

Usage: python -m bench.newcomer [--short] [--without-test] [--minutes 0.2] [--folder DIR]. Prints one JSON
line: of each step the seconds, the megabytes of disk that it added, and whether it went well. Exit code 1 if
one did not.

In full: `make demo` and `make test` in a clone of what is committed, then a venv of its own with nothing in
it, and every command of the README's shell blocks in turn. Commands that serve are started, their page is
fetched, and they are ended. `--short` is what the suite runs: a source distribution and a wheel made of the
working tree without npm, the wheel alone in a venv that sees the packages here, and each kind of command
once, on a small model.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from itertools import islice
from pathlib import Path
from typing import Any

from clearhead.text.stories import stories

ROOT = Path(__file__).parents[1]
BUILT = ("src/clearhead/page/site", "src/clearhead/page/bundles")
SHELLS = ("", "sh", "bash", "console")  # the languages of blocks
SERVES = ("serve", "explore")
LONGEST = 3600  # seconds of a step
PATIENCE = 120  # seconds until a server says its address
SMALL = "--steps 5 --blocks 1 --heads 1 --width 32 --context 32 --tokenizer char"
SHORT = (
    "clearhead --version",
    "clearhead doctor --json",
    f"clearhead train my.txt --out runs/my {SMALL}",
    'clearhead generate runs/my "Once" --tokens 5',
    'clearhead inspect runs/my "Once"',
    "clearhead explore runs/my",
    "clearhead demo --minutes 0.02 --no-browser",
)


class Way:
    """A folder in which one step follows another, and what came of each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.steps = folder, list[dict[str, Any]]()
        self.work = folder / "work"
        self.work.mkdir()
        texts = [told.text for told in islice(stories(), 400)]
        (self.work / "my.txt").write_text("\n".join(texts[:300]), encoding="utf-8")
        (self.work / "other.txt").write_text("\n".join(texts[300:]), encoding="utf-8")
        schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
        (self.work / "person.json").write_text(json.dumps(schema), encoding="utf-8")
        self.environment = {
            **{
                name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
            },
            "CLEARHEAD_HOME": str(folder / "home"),
            "CLEARHEAD_CONFIG": "",
            "CI": "1",  # nobody looks: demo opens no browser
        }

    def step(self, command: str, cwd: Path | None = None, other: dict[str, str] | None = None) -> bool:
        """Do it as it would be typed, and write down how it went."""
        before, began = _disk(self.folder), time.perf_counter()
        words = shlex.split(command)
        serving = words[0] == "clearhead" and words[1] in SERVES
        said = (self._serve if serving else self._run)(
            words, cwd or self.work, {**self.environment, **(other or {})}
        )
        taken = time.perf_counter() - began
        self.steps.append(
            {
                "command": command,
                "seconds": round(taken, 1),
                "disk_mb": round((_disk(self.folder) - before) / 1e6, 1),
                "ok": said is None,
                **({} if said is None else {"said": said[-500:]}),
            }
        )
        print(
            f"{'ok' if said is None else 'FAILED':<7} {taken:7.1f} s  {command}", file=sys.stderr, flush=True
        )
        return said is None

    def _run(self, words: list[str], cwd: Path, environment: dict[str, str]) -> str | None:
        typed = "Hello\n/quit\n" if "chat" in words[:2] else ""
        done = subprocess.run(
            [_found(words[0], environment), *words[1:]],
            cwd=cwd,
            env=environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
        return None if done.returncode == 0 else done.stderr.strip() or done.stdout.strip() or "no word"

    def _serve(self, words: list[str], cwd: Path, environment: dict[str, str]) -> str | None:
        """Start it, fetch what is at its address, and end it as Ctrl-C would."""
        no_browser = ["--no-browser"] if words[1] == "explore" and "--no-browser" not in words else []
        with subprocess.Popen(
            [_found(words[0], environment), *words[1:], *no_browser],
            cwd=cwd,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            timer = threading.Timer(PATIENCE, server.kill)
            timer.start()
            assert server.stderr is not None
            said = []
            try:
                for line in server.stderr:
                    said.append(line)
                    if found := re.search(r"open (http://\S+)", line):
                        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
                        with opener.open(found[1], timeout=60) as page:  # the token becomes a cookie
                            if b"<html" not in page.read():
                                return f"no page at {found[1]}"
                        break
                else:
                    return "".join(said)
            finally:
                server.send_signal(signal.SIGINT)
                server.stderr.read()
                timer.cancel()
        return None if server.returncode in (0, 130) else f"ended with {server.returncode}"


def readme_commands(text: str, minutes: float) -> list[str]:
    """The commands in the README's shell blocks, with less time to train, and on this text."""
    commands, language = [], None
    for line in text.splitlines():
        if line.startswith("```"):
            language = line[3:].strip() if language is None else None
        elif language in SHELLS:
            command = re.sub(r"\s+#.*$", "", line.removeprefix("$ ")).strip()
            if re.match(r"(clearhead|make|pip) ", command) and "…" not in command:
                commands.append(shorten(command, minutes))
    return commands


def shorten(command: str, minutes: float) -> str:
    """Minutes and steps as a newcomer would not wait for them here."""
    command = re.sub(r"--minutes [\d.]+", f"--minutes {minutes:g}", command)
    command = re.sub(r"--steps \d+", "--steps 20", command)
    trains = re.match(r"clearhead (train|race)\b", command) and "--kind ngram" not in command
    if trains and "--minutes" not in command and "--steps" not in command:
        command += f" --minutes {minutes:g}"
    return command


def go_all_the_way(path: Way, without_test: bool, minutes: float) -> dict[str, Any]:
    clone = path.folder / "clone"
    path.step(f"git clone --quiet {shlex.quote(str(ROOT))} {shlex.quote(str(clone))}")
    commands = readme_commands((clone / "README.md").read_text(encoding="utf-8"), minutes)
    for command in [each for each in commands if each.startswith("make ")]:
        if not (without_test and command == "make test"):
            path.step(command, clone)
    path.step(f"{shlex.quote(sys.executable)} -m venv {path.folder / 'venv'}")
    _enter(path, path.folder / "venv")
    for command in [each for each in commands if not each.startswith("make ")]:
        if command.startswith("pip install ."):
            path.step(command.replace("pip install", "pip install --constraint constraints.txt"), clone)
        else:
            path.step(command)
    return {}


def go_a_short_way(path: Way) -> dict[str, Any]:
    source, python = path.folder / "source", shlex.quote(sys.executable)
    page = copy_tree(source)
    without_npm = {"PATH": str(path.folder / "nowhere")}
    if not page:
        without_npm["CLEARHEAD_WITHOUT_PAGE"] = "1"
    path.step(f"{python} -m build --no-isolation --outdir {path.folder / 'dist'} {source}", other=without_npm)
    (wheel,) = (path.folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        carried = sum(name.startswith("clearhead/page/site/") for name in packed.namelist())
    venv = path.folder / "venv"
    path.step(f"{python} -m venv --without-pip {venv}")
    (site,) = venv.glob("lib/python*/site-packages")
    outer = [each for each in sys.path if each.endswith("site-packages")]
    (site / "outer.pth").write_text("\n".join(outer), encoding="utf-8")
    path.step(f"{python} -m pip --python {venv / 'bin/python'} install --quiet --no-deps --no-index {wheel}")
    _enter(path, venv)
    for command in SHORT:
        if page or " explore " not in command:
            path.step(command)
    return {
        "page_built": page,
        "page_files_in_wheel": carried,
        "wheel_mb": round(wheel.stat().st_size / 1e6, 2),
    }


def copy_tree(to: Path) -> bool:
    """What git has of the working tree, and then the page, which so is newer. Whether there is one."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
    page = all((ROOT / name).is_dir() for name in BUILT)
    for name in BUILT if page else ():
        shutil.copytree(ROOT / name, to / name, copy_function=shutil.copyfile)
    return page


def _enter(path: Way, venv: Path) -> None:
    """From here on its commands are found first, as after `activate`."""
    path.environment["PATH"] = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"


def _found(command: str, environment: dict[str, str]) -> str:
    return shutil.which(command, path=environment["PATH"]) or command


def _disk(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--without-test", action="store_true", help="leave `make test` out, which calls this")
    parser.add_argument("--minutes", type=float, default=0.2, help="that each training takes")
    parser.add_argument("--folder", type=Path, help="where all of it is kept; else it is cleared away")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as temporary:
        folder = Path(given.folder or temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        path = Way(folder)
        if given.short:
            found = go_a_short_way(path)
        else:
            found = go_all_the_way(path, given.without_test, given.minutes)
        seconds = sum(step["seconds"] for step in path.steps)
        failed = [step["command"] for step in path.steps if not step["ok"]]
        report = {"short": given.short, **found, "failed": failed, "steps": path.steps}
        print(json.dumps({**report, "seconds": round(seconds, 1), "disk_mb": round(_disk(folder) / 1e6, 1)}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
