"""Grades as CSV and JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from clearhead.classroom.exercises import EXERCISES, MOST_POINTS
from clearhead.classroom.grading import StudentGrades


def to_json(results: Sequence[StudentGrades]) -> dict[str, Any]:
    """All grades with their reasons."""
    return {
        "most_points": MOST_POINTS,
        "students": [
            {
                "student": result.student,
                "points": result.points,
                "note": result.note,
                "exercises": [asdict(grade) for grade in result.grades],
            }
            for result in results
        ],
    }


def points_csv(results: Sequence[StudentGrades]) -> str:
    """One row per student: the total and the points for each exercise."""
    rows: list[list[object]] = [["student", "points", *(exercise.name for exercise in EXERCISES), "note"]]
    for result in results:
        points = [grade.points for grade in result.grades]
        rows.append([result.student, result.points, *points, result.note])
    return _csv(rows)


def reasons_csv(results: Sequence[StudentGrades]) -> str:
    """One row per student and exercise, with the reason."""
    rows: list[list[object]] = [["student", "exercise", "points", "of", "status", "reason"]]
    for result in results:
        for grade in result.grades:
            rows.append(
                [result.student, grade.exercise, grade.points, grade.most_points, grade.status, grade.reason]
            )
    return _csv(rows)


def _csv(rows: list[list[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([[_harmless(cell) for cell in row] for row in rows])
    return text.getvalue()


def _harmless(cell: object) -> object:
    """Quote text that a spreadsheet would run as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
