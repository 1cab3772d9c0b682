"""The grader's side of a running submission: requests with a time limit, and answers that are not trusted."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.classroom.answers import encode
from clearhead.classroom.runner import END
from clearhead.errors import UserError
from clearhead.processes import PACKAGE_HOME, environment, import_path, python

START_SECONDS = 300  # to import torch and load the model, on a busy machine
END_SECONDS = 30
MOST_ANSWER = 2**22  # bytes
PACKAGE = Path(__file__).resolve().parent
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH")
FOLDER_VARIABLES = ("HOME", "TMPDIR", "CLEARHEAD_HOME", "MPLCONFIGDIR", "IPYTHONDIR")


class SubmissionError(Exception):
    """The submission raised an error, and its process is still usable."""


class ProcessEndedError(Exception):
    """The process ended, or has to be ended. The message is the reason."""


@dataclass(frozen=True)
class ProcessLimits:
    """Limits on one process: seconds for each cell or call, CPU seconds in total, and memory in bytes."""

    seconds: float = 20
    cpu_seconds: int = 120
    memory: int = 4 * 2**30


class Runner:
    """The process that imports torch once and forks for each submission. Not thread-safe."""

    def __init__(self) -> None:
        if not hasattr(os, "fork"):
            raise UserError("grading needs Linux or macOS: other systems cannot limit what a submission does")
        self.control, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 (Python itself)
                python("clearhead.classroom.runner", str(theirs.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=_environment(),
                start_new_session=True,
            )
        self.control.settimeout(START_SECONDS)
        if self.control.recv(16) != b"ready\n":
            self.close()
            raise UserError("the process that runs submissions did not start: run clearhead doctor")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self.control.close()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class SubmissionProcess:
    """A fork of a runner, with limits, in a separate folder. Use it as a context manager."""

    def __init__(self, runner: Runner, limits: ProcessLimits, hidden: list[Path]) -> None:
        self.limits, self._control = limits, runner.control
        self._folder = tempfile.TemporaryDirectory(prefix="clearhead-class-", ignore_cleanup_errors=True)
        self._exit_code: int | None = None
        self._pending = b""
        self._id = secrets.token_hex(4)
        settings = {
            "id": self._id,
            "folder": str(Path(self._folder.name).resolve()),
            "hidden": [str(PACKAGE), *(str(path.resolve()) for path in hidden)],
            "variables": FOLDER_VARIABLES,
            "cpu_seconds": limits.cpu_seconds,
            "memory": limits.memory,
        }
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        os.set_blocking(self._requests, False)
        socket.send_fds(self._control, [json.dumps(settings).encode()], [requests, answers])
        os.close(requests)
        os.close(answers)
        try:
            self.confined = self._receive(END_SECONDS) is True
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SubmissionProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, source: str) -> None:
        self._ask({"run": source})

    def value(self, name: str) -> Any:
        return self._ask({"value": name})

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        return self._ask({"call": name, "arguments": encode(arguments)})

    def close(self) -> int:
        """End the process and everything it started, delete its folder, and return its exit code."""
        if self._exit_code is None:
            os.close(self._requests)
            os.close(self._answers)
            self._control.settimeout(END_SECONDS)
            self._exit_code = -signal.SIGKILL
            with suppress(OSError, ValueError):
                self._control.sendall(END)
                self._exit_code = int(self._control.recv(16))
            self._folder.cleanup()
        return self._exit_code

    def _ask(self, request: dict[str, Any]) -> Any:
        deadline = time.monotonic() + self.limits.seconds
        self._id = secrets.token_hex(4)
        left = memoryview(json.dumps({"id": self._id, **request}).encode() + b"\n")
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_WRITE)
            while left:
                self._wait(selector, deadline)
                try:
                    left = left[os.write(self._requests, left) :]
                except OSError:
                    raise ProcessEndedError(self._why_ended()) from None
        return self._receive(deadline - time.monotonic())

    def _receive(self, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                self._wait(selector, deadline)
                piece = os.read(self._answers, 2**16)
                self._pending += piece
                if not piece:
                    raise ProcessEndedError(self._why_ended())
                if len(self._pending) > MOST_ANSWER:
                    raise ProcessEndedError("sent too much data")
        line, self._pending = self._pending.split(b"\n", 1)
        return _parse(line, self._id)

    def _wait(self, selector: selectors.BaseSelector, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0 or not selector.select(left):
            raise ProcessEndedError(f"timed out after {self.limits.seconds:g} s")

    def _why_ended(self) -> str:
        number = -self.close()
        if number == signal.SIGXCPU:
            return f"timed out after {self.limits.cpu_seconds} s of CPU time"
        if number == signal.SIGKILL:
            return "was killed for using too much CPU time or memory"
        if number > 0:
            return f"crashed with {signal.Signals(number).name}"
        return f"ended the process with exit code {-number}"


def _parse(line: bytes, asked: str) -> Any:
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict) or answer.get("id") != asked or not ({"value", "error"} & answer.keys()):
        raise ProcessEndedError("sent something other than an answer")
    if "error" in answer:
        raise SubmissionError(one_line(answer["error"]))
    return answer["value"]


def one_line(text: object) -> str:
    """Untrusted text, short and printable."""
    return "".join(c if c.isprintable() else " " for c in str(text)[:200])


def _environment() -> dict[str, str]:
    """The environment of a submission: only a few of the grader's variables, since others may hold secrets."""
    given = environment()
    kept = {name: given[name] for name in KEPT_VARIABLES if name in given}
    installed = ("site-packages", "dist-packages")
    found = [path for path in import_path() if path == PACKAGE_HOME or Path(path).name in installed]
    imports = [*(str(Path(path).resolve()) for path in found), PACKAGE_HOME]
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(imports)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OMP_THREAD_LIMIT": "1",  # a submission that asks for more threads would crash: it cannot start any
        "OPENBLAS_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "MPLBACKEND": "Agg",
        "CUDA_VISIBLE_DEVICES": "",
    }
