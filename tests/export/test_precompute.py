"""What is asked beforehand, and how much of what was said is kept."""

import pytest

from clearhead.export.precompute import ARROWS, NEAR, SOURCES, WAYS, ResponseRecorder, keep_largest, shorten
from clearhead.server.in_process import InProcessClient

TEXT = "The duck was too tired"


@pytest.fixture
def interview(models):
    def begin(name, text=TEXT):
        trace = models[name].inspect(text)
        return ResponseRecorder(InProcessClient({"small": (models[name], (trace,))}), "small", trace)

    return begin


def test_the_strongest_ways_back_are_followed(interview):
    asked = interview("modern")
    asked.keep_ways([7, 5])
    ways = [each["asked"]["through"] for each in asked.kept if each["asked"]["word"] == 7]
    assert ways[0] == []
    assert 2 < len(ways) <= WAYS + 1
    known = {(): asked.kept[0]["answer"]}
    for each in asked.kept[2:]:
        way = each["asked"]["through"]
        *before, (block, head, source) = [(hop["block"], hop["head"], hop["source"]) for hop in way]
        heads = known[tuple(before)]["heads"]  # whoever goes a way was shown the one that leads there
        [values] = [found["values"] for found in heads if (found["block"], found["head"]) == (block, head)]
        assert values[source] != 0
        known[(*before, (block, head, source))] = each["answer"]
    assert any(len(way) == 2 for way in ways)
    assert [each["asked"]["through"] for each in asked.kept if each["asked"]["word"] == 5] == [[]]


def test_answers_are_the_routes_own(interview):
    asked = interview("modern")
    asked.keep_ways([3])
    asked.keep_arrows(1, 0)
    asked.keep_neighbours(["embedding", "final"])
    for each in asked.kept[::5]:
        said = asked.read(each["path"], **each["asked"])
        assert each["answer"] == shorten(said), each["path"]  # of a short text nothing is left out


def test_a_long_text_is_asked_about_at_its_end(interview):
    asked = interview("long", " ".join([TEXT] * 20))
    asked.keep_arrows(0, 1)
    asked.keep_neighbours(["final"])
    rows = [each["asked"].get("looking", each["asked"].get("position")) for each in asked.kept]
    last = len(asked.trace)
    assert rows == [*range(last - ARROWS, last), *range(last - NEAR, last)]


def test_only_what_can_be_drawn_is_kept():
    values = [(-1) ** i * float(i) for i in range(SOURCES + 6)]
    left = keep_largest(values)
    assert left == [None] * 6 + values[6:]  # and not 0, which they are not
    assert keep_largest([None, 2.0, -3.0]) == [None, 2.0, -3.0]


def test_numbers_have_no_more_digits_than_are_seen():
    said = {"a": [0.123456789, -1234567.8, None, 3], "b": {"c": 1e-9 / 3}}
    assert shorten(said) == {"a": [0.123457, -1234570.0, None, 3], "b": {"c": 3.33333e-10}}
