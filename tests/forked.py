"""Run Python in processes forked from one that has already imported torch, which takes seconds.

`Forked` starts that parent, which all workers may share. Tests then run this file as a script, a proxy for
the forked process: it passes on its streams, working directory and environment, forwards signals, and exits
the same way.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
LONGEST_START = 300  # seconds; only ends tests that hang
NUMBER = struct.Struct("i")  # the process id; at exit, the exit code or the negative signal number


class Forked:
    """The parent process, which starts in the background and runs until it is closed."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="forked-")
        self.address = f"{self._folder.name}/socket"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.forked", self.address],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
        )

    def close(self):
        with self._process:
            self._process.stdin.close()
        self._folder.cleanup()


def command(address):
    """Wait for the parent process at this address, and return the command that starts a fork."""
    end = time.monotonic() + LONGEST_START
    while not Path(address).exists():
        assert time.monotonic() < end, "the process to fork from did not start"
        time.sleep(0.05)
    return [sys.executable, "-IS", __file__, address]


def wait_for_commands(address):
    """Return a command's arguments, in the process forked for it, or None when there are no more."""
    # Later imports are left to the command, because they read its environment.
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401
    import rich.progress  # noqa: F401
    import torch._dynamo  # noqa: F401 (optimizers import it at their first step)
    import typer  # noqa: F401

    import clearhead.runs.saved_run  # noqa: F401

    os.fsync = lambda handle: None  # as in conftest.py
    tempfile.tempdir = None
    gc.freeze()  # keeps the garbage collector from touching, and so copying, these objects in each fork
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{address}-not-ready")
        listening.listen()
        os.rename(f"{address}-not-ready", address)  # noqa: PTH104
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the supervisors' exit statuses are not needed
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                return None
            connection, _ = listening.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                listening.close()
                return become(connection)
            connection.close()


def become(connection):
    """Fork, and return the command's arguments in the child; the parent reports how the child ended."""
    given, streams, _, _ = socket.recv_fds(connection, 2**20, 3)
    asked = json.loads(given)
    pid = os.fork()
    if pid == 0:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
    for stream in streams:
        os.close(stream)
    if pid != 0:
        keep(connection, pid)
    connection.close()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    encoding = os.environ.get("PYTHONIOENCODING", "utf-8")
    sys.stdin, sys.stdout = (os.fdopen(i, mode, encoding=encoding) for i, mode in enumerate("rw"))
    sys.stderr = os.fdopen(2, "w", 1, encoding)  # line-buffered, even when redirected
    for number in PASSED_ON:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return asked["arguments"]


def keep(connection, pid):
    """Wait until the process ends, or kill it when its proxy is gone."""
    connection.send(NUMBER.pack(pid))
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if select.select([connection], [], [], 0.02)[0]:
            os.kill(pid, signal.SIGKILL)
            break
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with suppress(OSError):
        connection.send(NUMBER.pack(code))
    os._exit(0)


def stand_for(address, arguments):
    """Act as a proxy for the forked process."""
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        asked = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
        socket.send_fds(connection, [json.dumps(asked).encode()], [0, 1, 2])
        (pid,) = NUMBER.unpack(connection.recv(NUMBER.size))
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: os.kill(pid, number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        for stream in range(3):
            os.close(stream)
        (code,) = NUMBER.unpack(connection.recv(NUMBER.size))
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def run(kind, what, *arguments):
    """Run `-m module` or `-c code` as Python would, and return the exit code."""
    sys.argv = [kind, *arguments]
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(what, {"__name__": "__main__"})
    except SystemExit as ended:
        return ended.code or 0
    return 0


if __name__ == "__main__":
    if sys.flags.isolated:
        stand_for(sys.argv[1], sys.argv[2:])
    elif (given := wait_for_commands(sys.argv[1])) is not None:
        code = run(*given)
        # Skip interpreter teardown: touching all imported objects would copy them first.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
