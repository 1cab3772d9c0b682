"""Python in processes of its own, forked from one that has imported torch already, which takes seconds.

`Forked` starts that one. A test's Python is then this file as a script, which stands for the forked process:
it hands over its streams, folder and environment, passes signals on, and ends as that one ends.
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
from contextlib import suppress
from pathlib import Path

PASSED_ON = (signal.SIGINT, signal.SIGTERM)
NUMBER = struct.Struct("i")  # the process's; at its end its exit code, or minus the signal that ended it


class Forked:
    """For as long as it is open."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="forked-")
        self.address = f"{self._folder.name}/socket"
        command = [sys.executable, "-m", "tests.forked", self.address]
        self._process = subprocess.Popen(
            command, cwd=Path(__file__).parents[1], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self):
        assert self._process.stdout.readline() == b"ready\n"
        return [sys.executable, "-IS", __file__, self.address]

    def __exit__(self, *_):
        with self._process:
            self._process.stdin.close()
        self._folder.cleanup()


def wait_for_commands(address):
    """The arguments of each, in the process forked for it; none when there will be no more."""
    # What it imports as it goes on is the command's own: it reads the environment.
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401
    import rich.progress  # noqa: F401
    import torch._dynamo  # noqa: F401 (optimizers import it at their first step)
    import typer  # noqa: F401

    import clearhead.runs.saved_run  # noqa: F401

    tempfile.tempdir = None
    gc.freeze()  # what is not looked at is not copied for each command
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        os.write(1, b"ready\n")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how those ended that keep a command
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
    """The command; its parent stays to tell how it ended."""
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
    sys.stderr = os.fdopen(2, "w", 1, encoding)  # line by line, wherever it goes
    for number in PASSED_ON:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return asked["arguments"]


def keep(connection, pid):
    """Until it ends, or until whoever started it is no more."""
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
    """Be to others what the forked process is."""
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
    """As Python would run `-m module` or `-c code`; its exit code."""
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
        # To take all that was imported apart would be to copy it first.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
