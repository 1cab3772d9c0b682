"""What all stops have in common: numbers, texts, and questions whose answers can be checked."""

import json
import re

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.lectures.catalog import LECTURES, find_stops
from clearhead.lectures.stop import Question, parse_number

STOPS = [stop for name in LECTURES for stop in find_stops(name)]


def test_lectures_have_all_their_stops_in_order():
    for name, count in (("000", 10), ("001", 9), ("002", 11)):
        lecture = clearhead.lecture(name)
        assert [stop.id for stop in lecture.stops] == [f"{name}.{i}" for i in range(1, count + 1)]
        assert lecture.stop(count) is lecture.stops[-1]
        assert find_stops(f"{name}.{count}") == (lecture.stops[-1],)


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.id)
def test_every_stop_can_be_shown(stop):
    shown = stop.to_dict()
    json.dumps(shown, allow_nan=False)
    assert shown["parts"] or shown["findings"]
    for text in (shown["notice"], shown["question"]["solution"]):
        assert not re.search(r"[{}]", text), text
    if not stop.question.options:
        assert shown["question"]["answer"] in shown["question"]["solution"]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.id)
def test_every_question_accepts_its_answer_and_rejects_others(stop):
    question, answer = stop.question, stop.question.answer()
    if question.options:
        right = [i == answer for i in range(len(question.options))]
        assert [question.is_right(letter) for letter in question.letters] == right
        assert [question.is_right(f" {option} ") for option in question.options] == right
        for given in ("z", "", "9"):
            with pytest.raises(UserError, match=f"from a to {question.letters[-1]}"):
                question.is_right(given)
    else:
        assert question.is_right(f"{answer:.10f}")
        assert question.is_right(question.show_answer())
        assert question.is_right(f"{answer:.2f}")
        assert not question.is_right(f"{answer + 0.2:.10f}")
        assert not question.is_right(f"{answer - 0.2:.10f}")


def test_answers_may_be_decimals_and_fractions():
    question = Question("?", lambda: 0.375, "", "{answer}", digits=3)
    for given in ("3/8", "0.375", "0,375", ".375", " 3 / 8 ", "0.38", "0.37", "37.5 %"):
        assert question.is_right(given), given
    for given in ("1/2", "0.36", "0.4"):
        assert not question.is_right(given), given
    whole = Question("?", lambda: 44, "", "{answer}")
    assert [whole.is_right(given) for given in ("44", "44.0", "43.999")] == [True, True, False]
    assert parse_number("2,048") == [2.048, 2048]
    assert parse_number("−1.234.567") == [-1234567]
    for given in ("", "half", "1/0", "nan", "1e400", "1e99999999", "٣", "1,2,3", "%"):
        with pytest.raises(UserError, match="expected a number"):
            parse_number(given)


def test_unknown_lectures_and_stops_are_rejected():
    for name, message in (
        ("003", "the lectures are 000, 001, 002"),
        ("000.11", "the stops are 1 to 10"),
        ("000.0", "the stops are 1 to 10"),
        ("000.x", r"expected one such as 000\.1"),
    ):
        with pytest.raises(UserError, match=message):
            find_stops(name)
