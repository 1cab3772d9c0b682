"""Grade a class whose students hand in correct, wrong, crashing, hanging, cheating and unreadable notebooks.

Usage: python -m bench.classroom [--submissions 300] [--seed 0] [--timeout 20] [--jobs 2] [--short]. Makes the
submissions from the solutions, changing one to three exercises in each, and grades them. Prints one JSON line: the
number of submissions of each kind, the number of `grades` and of those that are `as_expected` (with examples of
the others), the grades by status, and the seconds that grading took.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from clearhead.classroom.course import Course, write_course
from clearhead.classroom.execution import ProcessLimits
from clearhead.classroom.exercise import Exercise
from clearhead.classroom.exercises import EXERCISES
from clearhead.classroom.grading import StudentGrades, grade_course

SUBMISSIONS, SHORT = 300, 8
KINDS = {"right": 40, "wrong": 22, "crashing": 13, "hanging": 10, "cheating": 10, "unreadable": 5}  # percent

# A typical mistake in each solution: what is replaced, and with what.
MISTAKES = {
    "simplest-attention": (".masked_fill(future, -torch.inf)", ""),
    "layer-norm": (".mean().sqrt()", ".sum().sqrt()"),
    "one-head": (" / key.shape[-1] ** 0.5", ""),
    "induction-head": ("second - n + 1", "second - n"),
    "patch-the-prompt": (".item()", ".item() / 2"),
    "chain-rule": ("range(1, ", "range(2, "),
    "query-and-keys": ("base * ", "10 * "),
    "boosted-keys": ("n_zeros * ", ""),
    "skip-gram-pairs": ("i + window + 1", "i + window"),
    "causal-weights": (".softmax(-1)", ".softmax(0)"),
    "explain-this-weight": ("next(", "(2.0, *next("),
    "why-this-blank": (".argmin()", ".argmax()"),
}
CRASHES = {
    "raise ValueError('not finished')": "error",
    "def {asks}(:": "error",
    "{asks} = 1 / 0": "error",
    "{asks} = [0] * 10**12": "out of memory",
    "import os; os._exit(0)": "ended",
    "import ctypes; ctypes.string_at(0)": "ended",
    "import sys; sys.exit()": "error",
}
HANGS = (
    "while True: pass",
    "import time; time.sleep(10**6)",
    "try:\n    while True: pass\nexcept BaseException: pass",
)
# Whatever status these get, they must earn no points.
CHEATS = (
    "from clearhead.classroom.exercises import EXERCISES\n"
    "exec(next(each.solution for each in EXERCISES if each.asks == '{asks}'))",
    "import json\n"
    "for cell in json.load(open('{folder}/solutions/{student}.ipynb'))['cells']:\n"
    "    if cell['metadata'].get('clearhead') == {{'exercise': '{name}', 'role': 'answer'}}:\n"
    "        exec(cell['source'])",
    "class Equal(float):\n"
    "    def __eq__(self, other): return True\n"
    "    def __call__(self, *_): return Equal()\n"
    "{asks} = Equal()",
    "import os\n"
    "for handle in range(3, 64):\n"
    '    try: os.write(handle, b\'{{"value": "passed"}}\\n\')\n'
    "    except OSError: pass\n"
    "{asks} = lambda *_: 'passed'",
    "torch.allclose = torch.equal = lambda *_, **__: True\n{asks} = lambda *_: torch.zeros(2)",
)
UNREADABLE = (b"", b"{", b"%PDF-1.7 \x00\xff", b"[1, 2]", b'{"cells": 3, "nbformat": 4}', b"link", b"huge")
NOT_PASSED = "not passed"


def break_exercise(
    kind: str, exercise: Exercise, random: Random, folder: Path, student: str
) -> tuple[str, str]:
    """The code of an answer, and the status it should get."""
    if kind == "wrong":
        old, new = MISTAKES[exercise.name]
        assert old in exercise.solution
        code = exercise.solution.replace(old, new)
        return (code + ")" if code.count("(") > code.count(")") else code), "wrong"
    if kind == "crashing":
        code, status = random.choice(list(CRASHES.items()))
    elif kind == "hanging":
        code, status = random.choice(HANGS), "timed out"
        if exercise.is_function and random.random() < 0.5:
            code = f"{exercise.solution.splitlines()[0]}\n    while True: pass"
    else:
        code, status = random.choice(CHEATS), NOT_PASSED
        return code.format(asks=exercise.asks, name=exercise.name, folder=folder, student=student), status
    return code.replace("{asks}", exercise.asks), status


def hand_in(kind: str, random: Random, folder: Path, student: str) -> dict[str, str]:
    """Write a submission, and return the status that each exercise should get."""
    path = folder / "submissions" / f"{student}.ipynb"
    if kind == "unreadable":
        content = random.choice(UNREADABLE)
        if content == b"link":
            path.symlink_to(folder / "solutions" / f"{student}.ipynb")
        else:
            path.write_bytes(content if content != b"huge" else b"[" + b" " * 10**7)
        return dict.fromkeys((exercise.name for exercise in EXERCISES), "unreadable")
    document = json.loads((folder / "solutions" / f"{student}.ipynb").read_text())
    meant = dict.fromkeys((exercise.name for exercise in EXERCISES), "passed")
    if kind != "right":
        for exercise in random.sample(EXERCISES, 1 if kind == "hanging" else random.randint(1, 3)):
            code, status = break_exercise(kind, exercise, random, folder, student)
            _answer_cell(document, exercise)["source"] = code
            meant[exercise.name] = status
    path.write_text(json.dumps(document))
    return meant


def _answer_cell(document: dict[str, Any], exercise: Exercise) -> dict[str, Any]:
    mark = {"exercise": exercise.name, "role": "answer"}
    return next(cell for cell in document["cells"] if cell["metadata"].get("clearhead") == mark)


def count_kinds(submissions: int) -> list[str]:
    """Kinds in the proportions of KINDS, with at least one of each."""
    counts = {kind: max(1, round(submissions * share / 100)) for kind, share in KINDS.items()}
    counts["right"] += submissions - sum(counts.values())
    return [kind for kind, count in counts.items() for _ in range(count)]


def compare(results: list[StudentGrades], meant: dict[str, dict[str, str]]) -> list[str]:
    """The grades that differ from the expected ones."""
    wrong = []
    for result in results:
        for grade in result.grades:
            status = meant[result.student][grade.exercise]
            if grade.status != status and not (status == NOT_PASSED and grade.points == 0):
                wrong.append(f"{result.student} {grade.exercise}: {grade.reason}, expected {status}")
    return wrong


def main(submissions: int, seed: int, timeout: float, jobs: int) -> dict[str, Any]:
    random = Random(seed)
    kinds = count_kinds(submissions)
    random.shuffle(kinds)
    students = tuple(f"student-{number:03}-{kind}" for number, kind in enumerate(kinds))
    with tempfile.TemporaryDirectory(prefix="clearhead-bench-") as place:
        folder = Path(place).resolve() / "class"
        course = Course(seed, students)
        began = time.perf_counter()
        write_course(course, folder)
        written = time.perf_counter()
        meant = {
            student: hand_in(kind, random, folder, student)
            for student, kind in zip(students, kinds, strict=True)
        }
        limits = ProcessLimits(timeout, cpu_seconds=round(6 * timeout))
        started = time.perf_counter()
        results = grade_course(course, folder, folder / "submissions", limits, jobs)
        seconds = time.perf_counter() - started
    differ = compare(results, meant)
    grades = [grade for result in results for grade in result.grades]
    return {
        "bench": "classroom",
        "submissions": len(results),
        "kinds": Counter(kinds),
        "grades": len(grades),
        "as_expected": len(grades) - len(differ),
        "differ": differ[:10],
        "status": Counter(grade.status for grade in grades),
        "jobs": jobs,
        "seconds_to_write": round(written - began, 1),
        "seconds_to_grade": round(seconds, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, default=SUBMISSIONS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--short", action="store_true", help=f"only {SHORT} submissions")
    given = parser.parse_args()
    print(
        json.dumps(main(SHORT if given.short else given.submissions, given.seed, given.timeout, given.jobs))
    )
