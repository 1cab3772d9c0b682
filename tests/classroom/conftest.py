"""A class of one student, and the process that runs submissions."""

import json

import pytest

from clearhead.classroom.course import Course
from clearhead.classroom.execution import ProcessLimits, Runner
from clearhead.classroom.notebook import student_notebook, teacher_notebook

SEED, STUDENT = 5, "anna"


@pytest.fixture(scope="session")
def course():
    return Course(SEED, (STUDENT,))


@pytest.fixture(scope="session")
def variants(course):
    return course.variants(STUDENT)


@pytest.fixture(scope="session")
def runner():
    started = Runner()
    yield started
    started.close()


@pytest.fixture(scope="session")
def limits():
    """Limits generous enough for a busy machine, except where a test expects a timeout."""
    return ProcessLimits(seconds=120, cpu_seconds=240)


@pytest.fixture
def solved(variants):
    """A notebook with all solutions, as a student would hand it in."""
    return json.loads(json.dumps(teacher_notebook(variants, STUDENT)))


@pytest.fixture
def untouched(variants):
    return json.loads(json.dumps(student_notebook(variants, STUDENT)))
