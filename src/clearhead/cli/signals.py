"""SIGINT, SIGTERM and SIGUSR1, which end a command in the same way."""

from __future__ import annotations

import signal
from types import FrameType

# Job schedulers send SIGTERM, or SIGUSR1 if asked to, some time before they kill a process; Windows has no SIGUSR1.
TERMINATING = [signal.SIGTERM, *([signal.SIGUSR1] if hasattr(signal, "SIGUSR1") else [])]

RECEIVED: list[int] = []  # signals so far: a library that is being imported may swallow the KeyboardInterrupt


def interrupt(number: int, _: FrameType | None) -> None:
    """Handle the signals of a scheduler like Ctrl-C: close what is open and remove temporary files."""
    RECEIVED.append(number)
    raise KeyboardInterrupt
