"""Run commands that fail at a chosen file operation: killed, interrupted by a signal, or on a full disk.

As a module, this is a server that imports everything once and forks a process for each command, which saves
each command's startup time. `Commands` is its client. Linux and macOS only.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

FILE_OPERATIONS = ("fsync", "replace", "rename", "mkdir", "unlink", "rmdir")
REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True)
class Fault:
    """A fault at file operation `at`, counting from 0 at the first one whose description contains `since`."""

    at: int
    when: str = "before"  # or "after", or "torn": after half of the data is written
    number: int = signal.SIGKILL
    since: str = ""
    fill: str | None = None  # instead of a signal, fill the disk with a file at this path


@dataclass(frozen=True)
class CommandResult:
    code: int  # the negative signal number if a signal ended the process
    out: str
    err: str
    operations: list[str]


class Commands:
    """Starts `clearhead` processes in a folder."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self.server = subprocess.Popen(
            [sys.executable, "-m", "tools.fault_injection"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )

    def __enter__(self) -> Commands:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        assert self.server.stdin is not None
        self.server.stdin.close()
        self.server.wait(timeout=60)
        assert self.server.stdout is not None
        self.server.stdout.close()

    def start(self, *arguments: object, fault: Fault | None = None, folder: Path | None = None) -> Process:
        notes = Path(tempfile.mkdtemp(prefix="breaking-"))
        request = {
            "arguments": [str(argument) for argument in arguments],
            "folder": str(folder or self.folder),
            "notes": str(notes),
            "fault": None if fault is None else asdict(fault),
        }
        return Process(self, self.ask(request)["pid"], notes)

    def run(self, *arguments: object, fault: Fault | None = None) -> CommandResult:
        return self.start(*arguments, fault=fault).wait()

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        print(json.dumps(request), file=self.server.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.server.stdout.readline())
        return answer


class Process:
    """A process that may still be running. Send signals before `wait`, which releases its process id."""

    def __init__(self, commands: Commands, pid: int, notes: Path) -> None:
        self.commands, self.pid, self.notes = commands, pid, notes

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def operations(self) -> list[str]:
        return (self.notes / "operations").read_text().splitlines()

    def wait(self) -> CommandResult:
        code = self.commands.ask({"wait": self.pid})["code"]
        out, err = ((self.notes / name).read_text() for name in ("out", "err"))
        result = CommandResult(code, out, err, self.operations())
        shutil.rmtree(self.notes)
        return result


# Server


def serve() -> None:
    _import_everything()
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = {"code": os.waitstatus_to_exitcode(status)}
        else:
            # Created here, so that they exist however early the process ends.
            streams = [os.open(Path(request["notes"], name), os.O_CREAT | os.O_WRONLY) for name in _STREAMS]
            pid = os.fork()
            if not pid:
                _run_command(request, *streams)
            for stream in streams:
                os.close(stream)
            answer = {"pid": pid}
        print(json.dumps(answer), flush=True)


_STREAMS = ("out", "err", "operations")


def _import_everything() -> None:
    """Import what a run needs. Uses no tensors, because torch's threads do not survive a fork."""
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401
    import torch._dynamo  # noqa: F401 (optimizers import it at their first step)

    from clearhead.cli import run

    with contextlib.redirect_stderr(io.StringIO()):
        run(["models", "nowhere"])  # typer imports its parser when it first parses options
    gc.freeze()  # keeps the garbage collector from touching, and so copying, these objects in each fork


def _run_command(request: dict[str, Any], out: int, err: int, operations: int) -> None:
    """Run the command in the forked process. Never returns."""
    code = 1
    try:
        os.chdir(request["folder"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.argv = ["clearhead", *request["arguments"]]
        fault = Fault(**request["fault"]) if request["fault"] else None
        _FileWatcher(Path(request["folder"]), operations, fault).install()
        from clearhead.cli import main

        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class _FileWatcher:
    """Counts the file operations in a folder and triggers the fault at the chosen one."""

    def __init__(self, folder: Path, notes: int, fault: Fault | None) -> None:
        self.folder, self.notes, self.fault, self.count = str(folder.resolve()), notes, fault, 0

    def install(self) -> None:
        import safetensors.torch

        # The kernel keeps what a killed process wrote, synced or not, so fsync is skipped.
        setattr(os, "fsync", lambda _: None)  # noqa: B010 (mypy wants the name of the argument)
        for name in FILE_OPERATIONS:
            setattr(os, name, self._watched(name, getattr(os, name)))
        tensors: Any = safetensors.torch
        tensors.serialize_file = self._watched_tensors(tensors.serialize_file)
        io.open = builtins.open = self._watched_open(builtins.open)

    def _step(self, name: str, path: object, work: Callable[[], Any], half: Callable[[], Any]) -> Any:
        description = f"{name} {_short_path(path)}"
        os.write(self.notes, f"{description}\n".encode())
        fault = None
        if self.fault is not None and (self.count or self.fault.since in description):
            fault = self.fault if self.fault.at == self.count else None
            self.count += 1
        if fault is None:
            return work()
        if fault.when == "before":
            _trigger(fault)
        if fault.when == "torn":
            half()
            _trigger(fault)
        try:
            return work()
        finally:
            if fault.when == "after":
                _trigger(fault)

    def _watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(target: Any, *rest: Any, **named: Any) -> Any:
            inside = isinstance(target, int) or named.get("dir_fd") is not None or self._contains(target)
            if not inside:
                return real(target, *rest, **named)
            return self._step(name, target, lambda: real(target, *rest, **named), lambda: None)

        return operation

    def _watched_tensors(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def write(tensors: Any, path: Any, **named: Any) -> Any:
            def half() -> None:
                real(tensors, path, **named)
                os.truncate(path, os.stat(path).st_size // 2)  # noqa: PTH116

            return self._step("tensors", path, lambda: real(tensors, path, **named), half)

        return write

    def _watched_open(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(path: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
            if not set(mode) & set("wxa+") or not self._contains(path):
                return real(path, mode, *rest, **named)
            file = self._step("open", path, lambda: real(path, mode, *rest, **named), lambda: None)
            write = file.write

            def watched_write(data: Any) -> Any:
                def half() -> None:
                    write(data[: len(data) // 2])
                    file.flush()

                return self._step("write", path, lambda: write(data), half)

            try:
                file.write = watched_write
            except AttributeError:  # raw files do not allow it
                return _RawFile(file, watched_write)
            return file

        return opened

    def _contains(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and str(Path(path).absolute()).startswith(self.folder)


class _RawFile:
    """A raw file whose writes are intercepted."""

    def __init__(self, file: Any, write: Callable[[Any], Any]) -> None:
        self.file, self.write = file, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def __enter__(self) -> _RawFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _trigger(fault: Fault) -> None:
    if fault.fill is None:
        os.kill(os.getpid(), fault.number)
        return
    handle = os.open(fault.fill, os.O_CREAT | os.O_WRONLY)
    for size in (2**20, 2**12, 1):
        try:
            while os.write(handle, b"\0" * size):
                pass
        except OSError:
            continue
    os.close(handle)


def _short_path(path: object) -> str:
    """Return the last two parts of a path."""
    if isinstance(path, int):
        return "-"
    return "/".join(Path(str(path)).parts[-2:])


if __name__ == "__main__":
    serve()
