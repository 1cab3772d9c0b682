"""Lectures on the command line: listed, printed in full when piped, and interactive in a terminal."""

import io
import json
import sys

import pytest


@pytest.fixture
def answering(clearhead, monkeypatch):
    """Run a command in a terminal in which these lines are typed."""

    def call(*arguments, typed):
        terminal = io.StringIO("".join(f"{line}\n" for line in typed))
        terminal.isatty = lambda: True
        monkeypatch.setattr(sys, "stdin", terminal)
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        result = clearhead(*arguments)
        assert result.code == 0, result.err
        return result.out, terminal.read()

    return call


def test_lectures_are_listed(clearhead):
    listed = clearhead("lecture").out
    for shown in (
        "000  From static",
        "  000.10  The residual stream",
        "  001.4  Keys and a query",
        "  002.11  The loss of one token",
    ):
        assert shown in listed
    outline = json.loads(clearhead("lecture", "--json").out)
    assert [len(each["stops"]) for each in outline] == [10, 9, 11]


def test_piped_lecture_prints_everything_without_asking(clearhead):
    printed = clearhead("lecture", "001").out
    assert printed.index("001.9  Masking") < printed.index("001.1  Language modeling\n\n")
    assert printed.count("\nNotice: ") == printed.count("\nQuestion: ") == printed.count("\nAnswer: ") == 9
    assert "0.47537" in printed
    assert "Your answer" not in printed


def test_one_stop_is_printed(clearhead):
    printed = clearhead("lecture", "001.4").out
    assert printed.startswith("001.4  Keys and a query\n")
    assert printed.rstrip().endswith("3/8, or 0.375.")
    assert "001.5" not in printed
    stop = json.loads(clearhead("lecture", "001.4", "--json").out)
    assert (stop["stop"], stop["question"]["answer"]) == ("001.4", "0.375")
    assert stop["findings"]["weight at 3 of 0010, base e"] == pytest.approx(0.47537, abs=5e-6)


def test_weights_have_the_lectures_five_decimals_and_are_not_cropped(clearhead, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert "  w1 = 0  0.00005  0.00005  0.99986  0.00005\n" in clearhead("lecture", "001.7").out
    last = "  8 lazy   0.00434  0.02257  0.88633  0.00301  0.00121  0.06321  0.00434  0.01499\n"
    assert last in clearhead("lecture", "002.7").out


def test_answers_are_checked_in_a_terminal(answering):
    printed, _ = answering("lecture", "001.4", typed=["1/2", "many", "3/8"])
    wrong, unread, right = map(
        printed.index, ("Not quite. A 0 counts", "'many': expected a number", "Right.")
    )
    assert wrong < unread < right
    assert "3/8, or 0.375." in printed[right:]


def test_options_are_answered_by_letter(answering):
    printed, _ = answering("lecture", "001.2", typed=["7", "a", "b"])
    assert "  b  e2' and e3'" in printed
    assert (
        printed.index("expected a letter from a to c") < printed.index("Not quite.") < printed.index("Right.")
    )


def test_enter_shows_the_solution_and_goes_on(answering):
    printed, rest = answering("lecture", "001", typed=["", "", "", "b", "q", "unread"])
    assert "The product is 0.25." in printed
    assert "Right." in printed
    assert "001.2  One interface, two networks\n\n" in printed
    assert "001.3  The running example\n\n" not in printed
    assert rest == "unread\n"


@pytest.mark.parametrize("typed", [["q"], [], ["", "q"], ["", "Q"]])
def test_q_or_the_end_of_input_ends_the_lecture(answering, typed):
    printed, _ = answering("lecture", "001", typed=typed)
    assert printed.count("Question: ") == (len(typed) == 2)
    assert "The product is" not in printed


def test_unknown_lectures_are_rejected(refused):
    refused("lecture", "003", words=["there is no lecture '003'", "000, 001, 002"])
    refused("lecture", "001.12", words=["lecture 001 has no stop 12", "1 to 9"])
