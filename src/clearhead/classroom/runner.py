"""The process that runs submissions, each in a separate fork with limits. It has no access to tests or expected values.

It imports torch and the model once. Then it accepts commands on a control socket: the limits of a fork as JSON,
together with two pipes. The fork reads requests from the first pipe as lines of JSON, and answers on the second:

    {"run": "code"}                        execute code
    {"value": "name"}                      the value of a variable
    {"call": "name", "arguments": […]}     the result of calling a function

The answer is {"value": …} or {"error": …}, with the "id" of the request. A submission can send any answer it likes,
so the reader must treat all of them as untrusted data; but only the reader knows which answers are correct. At END,
the fork and everything it started are killed, and its exit code is sent back.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import IO, Any

import torch

import clearhead
from clearhead.classroom import sandbox
from clearhead.classroom.answers import decode, plain

END = b"end\n"
MOST_MESSAGE = 200  # characters of an error
MAGIC = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)  # IPython's commands, which plain Python cannot parse
OUT_OF_MEMORY = ("not enough memory", "can't allocate memory")  # torch raises a RuntimeError
POLL_SECONDS, GRACE_SECONDS = 0.02, 1.0


def main(handle: int) -> None:
    control = socket.socket(fileno=handle)
    torch.set_num_threads(1)  # threads do not survive a fork
    clearhead.load("stories", "cpu").inspect("Once")  # imports everything before file access is restricted
    sandbox.adopt_orphans()
    control.sendall(b"ready\n")
    while True:
        order, pipes, *_ = socket.recv_fds(control, 2**16, 2)
        if not order:
            return
        child = os.fork()
        if child == 0:
            try:
                control.close()
                os.setsid()
                serve(json.loads(order), *pipes)
            finally:
                os._exit(1)
        for pipe in pipes:
            os.close(pipe)
        control.sendall(f"{_watch(child, control)}\n".encode())


def _watch(child: int, control: socket.socket) -> int:
    """Wait for END or for the grader to exit, then kill what is still running; return the child's exit code."""
    code, end = None, math.inf
    while code is None or end == math.inf:
        if end == math.inf and select.select([control], [], [], POLL_SECONDS)[0]:
            control.recv(len(END))
            end = time.monotonic() + GRACE_SECONDS  # it ends by itself unless it hangs
        if code is None:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                sandbox.end_children()
            elif end < math.inf:
                time.sleep(POLL_SECONDS)
    return code


def serve(settings: dict[str, Any], requests: int, answers: int) -> None:
    """Answer requests until the pipe is closed."""
    lines, replies = os.fdopen(requests, encoding="utf-8"), os.fdopen(answers, "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):  # a submission's input is empty, and its output is discarded
        os.dup2(null, handle)
    own = Path(settings["folder"])
    os.chdir(own)
    os.environ.update(dict.fromkeys(settings["variables"], str(own)))
    confined = sandbox.confine(own, [Path(each) for each in settings["hidden"]])
    sandbox.limit(settings["cpu_seconds"], settings["memory"])
    _reply(replies, {"id": settings["id"], "value": confined})
    names: dict[str, Any] = {"__name__": "__main__"}
    for line in lines:
        request = json.loads(line)
        try:
            reply = {"value": _answer(request, names)}
        except BaseException as error:  # a submission may raise anything, including SystemExit
            reply = {"error": describe(error)}
        _reply(replies, {"id": request["id"], **reply})


def _answer(request: dict[str, Any], names: dict[str, Any]) -> Any:
    if "run" in request:
        exec(compile(without_magic(request["run"]), "<notebook>", "exec"), names)  # noqa: S102
        return None
    name = request.get("call") or request["value"]
    if name not in names:
        raise NameError(f"{name} is not defined")
    if "call" in request:
        return plain(names[name](*decode(request["arguments"])))
    return plain(names[name])


def _reply(replies: IO[bytes], reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply).encode() + b"\n")
    replies.flush()


def without_magic(source: str) -> str:
    """Replace IPython commands such as %matplotlib inline with `pass`."""
    return MAGIC.sub(r"\1pass", source)


def describe(error: BaseException) -> str:
    """The type of an exception and its message, on one line."""
    try:
        message = str(error)[:MOST_MESSAGE]
    except BaseException:  # the submission's own exception, with its own __str__
        message = ""
    if isinstance(error, MemoryError) or any(sign in message for sign in OUT_OF_MEMORY):
        return "out of memory"
    return " ".join(f"raised {type(error).__name__}: {message}".split()).removesuffix(":")


if __name__ == "__main__":
    main(int(sys.argv[1]))
