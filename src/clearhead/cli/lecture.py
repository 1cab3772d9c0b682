"""`clearhead lecture`: the three lectures, stop by stop, with a question at each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from clearhead.cli.completion import choose
from clearhead.cli.console import out, print_json
from clearhead.cli.options import JSON
from clearhead.cli.results import finding_lines, part_lines
from clearhead.errors import UserError
from clearhead.lectures.catalog import LECTURES

if TYPE_CHECKING:
    from clearhead.labs.lab import ResultPart
    from clearhead.lectures.stop import Lecture, LectureStop, Question

WIDTH = 100  # characters per line of prose
QUIT = "q"
ROUNDING = 1e-6


def lecture(
    name: str = typer.Argument(
        None,
        metavar="LECTURE",
        help="000, 001 or 002, or one stop such as 000.6. [default: list all lectures]",
        autocompletion=choose(*LECTURES),
    ),
    json: bool = JSON,
) -> None:
    """Walk through a lecture, stop by stop.

    Each stop has an idea, numbers computed as you watch, what to notice, and a question. In a terminal, the answer
    is checked: type a number, a fraction or an option; Enter shows the solution and continues; q quits. Otherwise,
    everything is printed, including the solutions.

    \b
    For example:
      clearhead lecture 000
      clearhead lecture 001.4
    """
    from clearhead.lectures.catalog import find_stops
    from clearhead.lectures.catalog import lecture as find_lecture

    if not name:
        lectures = [find_lecture(each) for each in LECTURES]
        if json:
            print_json([_outline(each) for each in lectures])
        else:
            _list(lectures)
        return
    stops = find_stops(name)
    if json:
        found = [stop.to_dict() for stop in stops]
        print_json(found if name in LECTURES else found[0])
        return
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if name in LECTURES:
        _list([find_lecture(name)])
        if asks and not _continue("Press Enter to begin, or type q to quit: "):
            return
    for stop in stops:
        last = stop is stops[-1]
        _show(stop)
        if not asks:
            _print(stop.question.show_solution(), "Answer")
            out.print("")
        elif not _ask(stop.question) or (
            not last and not _continue("Press Enter for the next stop, or type q to quit: ")
        ):
            return


def _outline(lecture: Lecture) -> dict[str, object]:
    stops = [{"stop": stop.id, "title": stop.title} for stop in lecture.stops]
    return {"lecture": lecture.id, "title": lecture.title, "stops": stops}


def _list(lectures: list[Lecture]) -> None:
    for lecture in lectures:
        out.print(f"{lecture.id}  {lecture.title}", style="bold")
        width = max(len(stop.id) for stop in lecture.stops)
        for stop in lecture.stops:
            out.print(f"  {stop.id:<{width}}  {stop.title}")
        out.print("")


def _show(stop: LectureStop) -> None:
    out.print(f"{stop.id}  {stop.title}\n", style="bold")
    _print(stop.idea)
    result = stop.compute()
    for part in result.parts:
        out.print(f"\n{part.name}")
        _print_part(part)
    if result.findings:
        out.print("")
    for line in finding_lines(result):
        out.print(line)
    out.print("")
    _print(stop.show_notice(result), "Notice")
    out.print("")
    _print(stop.question.text, "Question")
    for letter, option in zip(stop.question.letters, stop.question.options, strict=True):
        out.print(f"  {letter}  {option}")


def _print_part(part: ResultPart) -> None:
    """Print weights as a shaded table, and anything else as plain lines."""
    from clearhead.cli.tables import weight_table
    from clearhead.labs.lab import Table

    if isinstance(part, Table) and part.shaded:
        values = [[value if isinstance(value, int | float) else -1 for value in row] for row in part.values]
        if all(0 <= value <= 1 + ROUNDING for row in values for value in row):
            out.print(weight_table([f"  {row}" for row in part.rows], part.columns, values))
            return
    for line in part_lines(part):
        out.print(f"  {line}")


def _print(text: str, heading: str = "") -> None:
    """Print prose in lines that fit the terminal."""
    from textwrap import fill

    text = f"{heading}: {text}" if heading else text
    out.print(fill(text, min(WIDTH, out.width), break_on_hyphens=False))


def _ask(question: Question) -> bool:
    """Ask until the answer is correct or Enter is pressed; return whether to continue."""
    while given := _read("Your answer (Enter shows the solution): "):
        if given.lower() == QUIT:
            return False
        try:
            right = question.is_right(given)
        except UserError as error:
            _print(str(error))
            continue
        if right:
            out.print("Right.", style="green")
            break
        _print(f"Not quite. {question.hint}")
    _print(question.show_solution())
    return True


def _continue(prompt: str) -> bool:
    out.print("")
    return _read(prompt).lower() != QUIT


def _read(prompt: str) -> str:
    """Read a line from the terminal; the end of the input counts as q."""
    try:
        return input(prompt).strip()
    except EOFError:
        out.print("")
        return QUIT
