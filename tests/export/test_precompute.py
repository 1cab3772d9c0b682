"""Precomputed responses: which requests are recorded, and how their responses are shortened."""

import pytest

from clearhead.export.precompute import (
    MAX_PATHS,
    MAX_POSITIONS,
    MAX_QUERIES,
    MAX_SOURCES,
    ResponseRecorder,
    keep_largest,
    round_numbers,
)
from clearhead.server.in_process import InProcessClient

TEXT = "The duck was too tired"


@pytest.fixture
def make_recorder(models):
    def make(name, text=TEXT):
        trace = models[name].inspect(text)
        return ResponseRecorder(InProcessClient({"small": (models[name], (trace,))}), "small", trace)

    return make


def test_strongest_paths_are_recorded(make_recorder):
    recorder = make_recorder("modern")
    recorder.record_attributions([7, 5])
    paths = [each["request"]["through"] for each in recorder.exchanges if each["request"]["token"] == 7]
    assert paths[0] == []
    assert 2 < len(paths) <= MAX_PATHS + 1
    known = {(): recorder.exchanges[0]["response"]}
    for each in recorder.exchanges[2:]:
        path = each["request"]["through"]
        *before, (block, head, source) = [(hop["block"], hop["head"], hop["source"]) for hop in path]
        heads = known[tuple(before)]["heads"]  # recorded before the paths that extend it
        [values] = [found["values"] for found in heads if (found["block"], found["head"]) == (block, head)]
        assert values[source] != 0
        known[(*before, (block, head, source))] = each["response"]
    assert any(len(path) == 2 for path in paths)
    assert [each["request"]["through"] for each in recorder.exchanges if each["request"]["token"] == 5] == [
        []
    ]


def test_recorded_responses_match_the_server(make_recorder):
    recorder = make_recorder("modern")
    recorder.record_attributions([3])
    recorder.record_scores(1, 0)
    recorder.record_neighbors(["embedding", "final"])
    for each in recorder.exchanges[::5]:
        value = recorder.request_json(each["path"], **each["request"])
        assert each["response"] == round_numbers(value), each["path"]  # a short text is recorded in full


def test_only_the_last_positions_of_long_texts_are_recorded(make_recorder):
    recorder = make_recorder("long", " ".join([TEXT] * 20))
    recorder.record_scores(0, 1)
    recorder.record_neighbors(["final"])
    rows = [
        each["request"].get("query_position", each["request"].get("position")) for each in recorder.exchanges
    ]
    last = len(recorder.trace)
    assert rows == [*range(last - MAX_QUERIES, last), *range(last - MAX_POSITIONS, last)]


def test_keep_largest_replaces_other_values_with_none():
    values = [(-1) ** i * float(i) for i in range(MAX_SOURCES + 6)]
    kept = keep_largest(values)
    assert kept == [None] * 6 + values[6:]  # None rather than 0, because the values are not 0
    assert keep_largest([None, 2.0, -3.0]) == [None, 2.0, -3.0]


def test_numbers_are_rounded_to_six_significant_digits():
    value = {"a": [0.123456789, -1234567.8, None, 3], "b": {"c": 1e-9 / 3}}
    assert round_numbers(value) == {"a": [0.123457, -1234570.0, None, 3], "b": {"c": 3.33333e-10}}
