"""`clearhead class`: exercises for a class, and their grading."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import typer

from clearhead.cli.command import Command
from clearhead.cli.console import clock, err, out, plural, print_json
from clearhead.cli.progress import live_line
from clearhead.cli.tables import print_table
from clearhead.errors import UserError

if TYPE_CHECKING:
    from clearhead.classroom.grading import StudentGrades

MOST_NAMED = 5  # files in one message

app = typer.Typer(
    help="Create and grade exercises on the lectures.\n\n"
    "\b\nFor example:\n  clearhead class new my-class --seed 7\n  clearhead class grade my-class",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("new", cls=Command)
def new(
    folder: Path = typer.Argument(..., metavar="FOLDER", help="The folder to create."),
    seed: int = typer.Option(
        ..., help="Seed for all data and hidden tests. Choose a large number and keep it secret."
    ),
    students: Path = typer.Option(
        None, metavar="FILE", help="A text file with one student per line. [default: the same data for all]"
    ),
    json: bool = typer.Option(False, "--json", help="Print the list of files as JSON."),
) -> None:
    """Write the notebooks for a class.

    Each student gets their own data, drawn from the seed and the student's name.

    \b
    For example:
      clearhead class new my-class --seed 271828
      clearhead class new my-class --seed 271828 --students students.txt
    """
    from clearhead.classroom.course import Course, read_students, write_course

    course = Course(seed, read_students(students) if students is not None else ())
    with live_line() as show:
        written = write_course(
            course,
            folder,
            lambda count: show(f"{count} of {plural(len(course.notebooks), 'notebook')}", False),
        )
    if json:
        print_json({"path": str(folder), "files": [str(path.relative_to(folder)) for path in written]})
        return
    out.print(f"{folder}/notebooks    {plural(len(course.notebooks), 'notebook')} to hand out")
    out.print(f"{folder}/solutions    the same notebooks with solutions and hidden tests, for the teacher")
    out.print(f"{folder}/nbgrader, {folder}/otter    the assignment for nbgrader and for Otter")
    out.print(f"\nput the submissions in {folder}/submissions, then: clearhead class grade {folder}")


@app.command("grade", cls=Command)
def grade(
    folder: Path = typer.Argument(..., metavar="FOLDER", help="A folder created by clearhead class new."),
    submissions: Path = typer.Option(
        None, metavar="PATH", help="The folder of submissions. [default: submissions/ in FOLDER]"
    ),
    timeout: float = typer.Option(20.0, help="Seconds for each cell and each function call."),
    memory: float = typer.Option(4.0, help="Gigabytes of memory for each submission."),
    jobs: int = typer.Option(
        0, show_default=False, help="Submissions to run at once. [default: one per CPU core]"
    ),
    json: bool = typer.Option(False, "--json", help="Print the grades as JSON."),
) -> None:
    """Grade the submissions.

    Runs every submission in a separate process, with limits and without access to the tests, and writes grades.csv,
    reasons.csv and grades.json to the folder.

    \b
    For example:
      clearhead class grade my-class
      clearhead class grade my-class --timeout 60 --jobs 2
    """
    if not 1 <= timeout <= 3600:
        raise UserError(f"--timeout {timeout:g}: expected 1 to 3600 seconds")
    if not 2 <= memory <= 1024:
        raise UserError(f"--memory {memory:g}: expected 2 to 1024 gigabytes")
    if not 0 <= jobs <= 1024:
        raise UserError(f"--jobs {jobs}: expected 1 to 1024")
    from clearhead.classroom.course import read_course
    from clearhead.classroom.execution import ProcessLimits
    from clearhead.classroom.grading import grade_course
    from clearhead.classroom.report import points_csv, reasons_csv, to_json
    from clearhead.files import disk_errors, write_json, write_text

    course = read_course(folder)
    limits = ProcessLimits(timeout, cpu_seconds=round(6 * timeout), memory=round(memory * 1e9))
    began, count = monotonic(), 0
    with live_line() as show:

        def watch(_: StudentGrades) -> None:
            nonlocal count
            count += 1
            show(f"{plural(count, 'submission')}   {clock(monotonic() - began)}", False)

        skipped: list[str] = []
        handed_in = submissions or folder / "submissions"
        results = grade_course(course, folder, handed_in, limits, jobs, watch, skipped.extend)
    with disk_errors(folder, "the grades were not saved"):
        write_text(folder / "grades.csv", points_csv(results))
        write_text(folder / "reasons.csv", reasons_csv(results))
        write_json(folder / "grades.json", to_json(results))
    _warn(results)
    if skipped:
        more = f" and {len(skipped) - MOST_NAMED} more" if len(skipped) > MOST_NAMED else ""
        err.print(f"not graded, since they are not notebooks: {', '.join(skipped[:MOST_NAMED])}{more}")
    if json:
        print_json(to_json(results))
        return
    _show(results)
    out.print(f"\n{folder}/grades.csv has the points for each exercise, {folder}/reasons.csv the reasons")


def _warn(results: list[StudentGrades]) -> None:
    if any(not result.confined for result in results):
        err.print("this system cannot confine a submission to its own files (no Landlock): see docs/class.md")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        err.print("graded as root, which is exempt from the limit on processes: use a different account")


def _show(results: list[StudentGrades]) -> None:
    if not results:
        out.print("no submissions were found")
        return
    rows = []
    for result in results:
        counts = Counter(grade.status for grade in result.grades if grade.status != "passed")
        parts = [f"{count} {status}" for status, count in counts.items()]
        if result.note:
            ungraded = all(grade.reason == result.note for grade in result.grades)
            parts = [result.note] if ungraded else [*parts, result.note]
        total = sum(grade.most_points for grade in result.grades)
        rows.append({"name": result.student, "points": f"{result.points}/{total}", "state": ", ".join(parts)})
    print_table({"name": "student", "points": "points", "state": "not passed"}, rows)
    if len(results) == 1:
        out.print("")
        reasons = [
            {"name": grade.exercise, "points": grade.points, "state": grade.reason}
            for grade in results[0].grades
        ]
        print_table({"name": "exercise", "points": "points", "state": "reason"}, reasons)
