"""The page and the terminal ask the same questions: one file has the texts, and both compute the same answers."""

import re

import pytest

from clearhead.lectures.catalog import LECTURES, find_stops
from clearhead.lectures.questions import plain, read_questions
from tests.lectures.answers import ANSWERS

STOPS = {stop.id: stop for name in LECTURES for stop in find_stops(name)}


def test_every_stop_has_a_question():
    assert list(read_questions()) == list(ANSWERS) == list(STOPS)


@pytest.mark.parametrize("stop", ANSWERS)
def test_terminal_computes_the_answers_that_the_page_accepts(stop):
    """tests/web/test_lectures.py enters these answers on the page and checks its questions."""
    expected, question = ANSWERS[stop], STOPS[stop].question
    assert bool(question.options) == isinstance(expected, set)
    if question.options:
        assert {question.answer()} == expected
    else:
        assert question.answer() == pytest.approx(expected, rel=1e-6)
        assert question.digits > 0 or question.answer() == round(question.answer())


@pytest.mark.parametrize("stop", ANSWERS)
def test_terminal_texts_contain_no_tex(stop):
    question = STOPS[stop].question
    for text in (question.text, question.hint, question.show_solution(), *question.options):
        assert not re.search(r"[\\${}]", text), text


def test_tex_as_plain_text():
    for tex, expected in {
        r"Let $\alpha_{31} = e^2 / \sqrt{d_k}$.": "Let α31 = e^2 / √d_k.",
        r"$\sqrt{(4 + 0) / 3}$ and $\hat{x}$": "√((4 + 0) / 3) and x̂",
        r"$w_5 \dots w_{12} \to w_{13}$": "w5 … w12 → w13",
        r"$e^{\ln 3}$, $e^{10}$, $Q K^\top$, $h_{t-1}$": "e^(ln 3), e^10, Q Kᵀ, h_(t-1)",
    }.items():
        assert plain(tex) == expected
