"""The three lectures by number."""

from __future__ import annotations

from importlib import import_module

from clearhead.errors import UserError
from clearhead.lectures.stop import Lecture, LectureStop

LECTURES = ("000", "001", "002")


def lecture(name: str) -> Lecture:
    """Return a lecture: `lecture("001").stop(4).compute()` computes the numbers of a stop."""
    if name not in LECTURES:
        raise UserError(f"there is no lecture {name!r}: the lectures are {', '.join(LECTURES)}")
    found: Lecture = import_module(f"clearhead.lectures.lecture{name}").LECTURE
    return found


def find_stops(name: str) -> tuple[LectureStop, ...]:
    """The stops of a lecture such as 000, or a single stop such as 000.6."""
    number, dot, stop = name.partition(".")
    found = lecture(number)
    if not dot:
        return found.stops
    if not stop.isdecimal():
        raise UserError(f"there is no stop {name!r}: expected one such as {number}.1")
    return (found.stop(int(stop)),)
