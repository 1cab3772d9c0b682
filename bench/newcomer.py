"""Follow the README as a new user: from a clean clone, in a fresh environment, step by step.

Usage: python -m bench.newcomer [--short] [--without-test] [--minutes 0.2] [--folder DIR]. Prints one JSON
line: the time and the disk space of each step, and whether it succeeded. The exit code is 1 if a
step failed.

The full mode runs `make demo` and `make test` in a clone of the last commit, then every command in the shell
blocks of the README in a new virtual environment. Commands that start a server are stopped after their page
has been fetched. `--short`, which the test suite runs, builds a source distribution and a wheel of the
working tree without npm, installs the wheel in a virtual environment that can import the packages installed here,
and runs each kind of command once on a small model.
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
from itertools import filterfalse, islice
from pathlib import Path
from typing import Any

from clearhead.text.stories import stories

ROOT = Path(__file__).parents[1]
BUILT = ("src/clearhead/page/site", "src/clearhead/page/bundles")
SHELLS = ("", "sh", "bash", "console")  # languages of the code blocks
SERVERS = ("serve", "explore")
STEP_TIMEOUT = 3600  # seconds
STARTUP_TIMEOUT = 120  # seconds until a server prints its address
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


class Walkthrough:
    """A sequence of commands in a folder, and the result of each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.steps = folder, list[dict[str, Any]]()
        self.work = folder / "work"
        self.work.mkdir()
        texts = [story.text for story in islice(stories(), 400)]
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
            "CI": "1",  # keeps demo from opening a browser
        }

    def step(self, command: str, cwd: Path | None = None, variables: dict[str, str] | None = None) -> bool:
        """Run a command as a user types it, and record the result."""
        before, began = _disk_usage(self.folder), time.perf_counter()
        argv = shlex.split(command)
        serving = argv[0] == "clearhead" and argv[1] in SERVERS
        error = (self._serve if serving else self._run)(
            argv, cwd or self.work, {**self.environment, **(variables or {})}
        )
        seconds = time.perf_counter() - began
        self.steps.append(
            {
                "command": command,
                "seconds": round(seconds, 1),
                "disk_mb": round((_disk_usage(self.folder) - before) / 1e6, 1),
                "ok": error is None,
                **({} if error is None else {"error": error[-500:]}),
            }
        )
        print(
            f"{'ok' if error is None else 'FAILED':<7} {seconds:7.1f} s  {command}",
            file=sys.stderr,
            flush=True,
        )
        return error is None

    def _run(self, argv: list[str], cwd: Path, environment: dict[str, str]) -> str | None:
        typed = "Hello\n/quit\n" if "chat" in argv[:2] else ""
        done = subprocess.run(
            [_find_command(argv[0], environment), *argv[1:]],
            cwd=cwd,
            env=environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=STEP_TIMEOUT,
        )
        return None if done.returncode == 0 else done.stderr.strip() or done.stdout.strip() or "no output"

    def _serve(self, argv: list[str], cwd: Path, environment: dict[str, str]) -> str | None:
        """Start a server, fetch its page, and stop it as Ctrl-C does."""
        no_browser = ["--no-browser"] if argv[1] == "explore" and "--no-browser" not in argv else []
        with subprocess.Popen(
            [_find_command(argv[0], environment), *argv[1:], *no_browser],
            cwd=cwd,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as server:
            timer = threading.Timer(STARTUP_TIMEOUT, server.kill)
            timer.start()
            assert server.stderr is not None
            output = []
            try:
                for line in server.stderr:
                    output.append(line)
                    if match := re.search(r"open (http://\S+)", line):
                        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
                        with opener.open(match[1], timeout=60) as page:  # the token becomes a cookie
                            if b"<html" not in page.read():
                                return f"no page at {match[1]}"
                        break
                else:
                    return "".join(output)
            finally:
                server.send_signal(signal.SIGINT)
                server.stderr.read()
                timer.cancel()
        return None if server.returncode in (0, 130) else f"exited with code {server.returncode}"


def readme_commands(text: str, minutes: float) -> list[str]:
    """Return the commands in the shell blocks of the README, with shorter training runs."""
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
    """Reduce the minutes and steps of a training command."""
    command = re.sub(r"--minutes [\d.]+", f"--minutes {minutes:g}", command)
    command = re.sub(r"--steps \d+", "--steps 20", command)
    trains = re.match(r"clearhead (train|race)\b", command) and "--kind ngram" not in command
    if trains and "--minutes" not in command and "--steps" not in command:
        command += f" --minutes {minutes:g}"
    return command


def is_make(command: str) -> bool:
    return command.startswith("make ")


def run_full(walk: Walkthrough, without_test: bool, minutes: float) -> dict[str, Any]:
    clone = walk.folder / "clone"
    walk.step(f"git clone --quiet {shlex.quote(str(ROOT))} {shlex.quote(str(clone))}")
    commands = readme_commands((clone / "README.md").read_text(encoding="utf-8"), minutes)
    for command in filter(is_make, commands):
        if not (without_test and command == "make test"):
            walk.step(command, clone)
    walk.step(f"{shlex.quote(sys.executable)} -m venv {walk.folder / 'venv'}")
    _activate(walk, walk.folder / "venv")
    for command in filterfalse(is_make, commands):
        if command.startswith("pip install ."):
            walk.step(command.replace("pip install", "pip install --constraint constraints.txt"), clone)
        else:
            walk.step(command)
    return {}


def run_short(walk: Walkthrough) -> dict[str, Any]:
    source, python = walk.folder / "source", shlex.quote(sys.executable)
    page = copy_tree(source)
    without_npm = {"PATH": str(walk.folder / "nowhere")}
    if not page:
        without_npm["CLEARHEAD_WITHOUT_PAGE"] = "1"
    walk.step(
        f"{python} -m build --no-isolation --outdir {walk.folder / 'dist'} {source}", variables=without_npm
    )
    (wheel,) = (walk.folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        carried = sum(name.startswith("clearhead/page/site/") for name in packed.namelist())
    venv = walk.folder / "venv"
    walk.step(f"{python} -m venv --without-pip {venv}")
    (site,) = venv.glob("lib/python*/site-packages")
    outer = [entry for entry in sys.path if entry.endswith("site-packages")]
    (site / "outer.pth").write_text("\n".join(outer), encoding="utf-8")
    walk.step(f"{python} -m pip --python {venv / 'bin/python'} install --quiet --no-deps --no-index {wheel}")
    _activate(walk, venv)
    for command in SHORT:
        if page or " explore " not in command:
            walk.step(command)
    return {
        "page_built": page,
        "page_files_in_wheel": carried,
        "wheel_mb": round(wheel.stat().st_size / 1e6, 2),
    }


def copy_tree(to: Path) -> bool:
    """Copy the files that git lists, then any built page; return whether there is one.

    The page is copied last so that it is newer than its sources.
    """
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


def _activate(walk: Walkthrough, venv: Path) -> None:
    """Put the virtual environment's commands first on PATH, as its `activate` does."""
    walk.environment["PATH"] = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"


def _find_command(command: str, environment: dict[str, str]) -> str:
    return shutil.which(command, path=environment["PATH"]) or command


def _disk_usage(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true")
    parser.add_argument(
        "--without-test", action="store_true", help="skip `make test`, which calls this program"
    )
    parser.add_argument("--minutes", type=float, default=0.2, help="minutes per training run")
    parser.add_argument(
        "--folder", type=Path, help="folder to work in, which is kept (default: a temporary folder)"
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="newcomer-") as temporary:
        folder = Path(args.folder or temporary).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        walk = Walkthrough(folder)
        extra = run_short(walk) if args.short else run_full(walk, args.without_test, args.minutes)
        seconds = sum(step["seconds"] for step in walk.steps)
        failed = [step["command"] for step in walk.steps if not step["ok"]]
        report = {"short": args.short, **extra, "failed": failed, "steps": walk.steps}
        print(
            json.dumps(
                {**report, "seconds": round(seconds, 1), "disk_mb": round(_disk_usage(folder) / 1e6, 1)}
            )
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
