"""Grades as tables."""

import csv
import io
import json

from clearhead.classroom.exercises import EXERCISES
from clearhead.classroom.grading import Grade, StudentGrades
from clearhead.classroom.report import points_csv, reasons_csv, to_json


def result(student="anna", reason="passed", note=""):
    grades = [Grade(each.name, each.points, each.points, "passed", reason) for each in EXERCISES]
    return StudentGrades(student, grades, note)


def read(text):
    return list(csv.reader(io.StringIO(text)))


def test_points_have_a_row_per_student():
    header, anna, ben = read(points_csv([result(), result("ben", note="a, b")]))
    assert header == ["student", "points", *(each.name for each in EXERCISES), "note"]
    assert anna == ["anna", "36", *(str(each.points) for each in EXERCISES), ""]
    assert ben[-1] == "a, b"


def test_reasons_have_a_row_per_exercise():
    rows = read(reasons_csv([result(reason='wrong: got ["a"]')]))
    assert len(rows) == 13
    assert rows[1] == ["anna", "simplest-attention", "2", "2", "passed", 'wrong: got ["a"]']


def test_formulas_are_disarmed():
    assert read(points_csv([result("=1+1")]))[1][0] == "'=1+1"


def test_json_has_everything():
    document = json.loads(json.dumps(to_json([result()])))
    assert document["most_points"] == 36
    (student,) = document["students"]
    assert student["points"] == 36
    assert student["exercises"][0] == {
        "exercise": "simplest-attention",
        "points": 2,
        "most_points": 2,
        "status": "passed",
        "reason": "passed",
    }
