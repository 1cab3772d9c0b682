"""Tests for the vocabulary benchmark, with a fake clock."""

import pytest

from bench.vocabulary import count, measure, split


@pytest.mark.slow
def test_two_vocabularies_are_compared(story_text, tmp_path, work_clock):
    training, held_out = split(story_text.encode()[:20_000], tmp_path)
    assert training.read_bytes() + held_out.read_bytes() == story_text.encode()[:20_000]
    figures = [measure(training, held_out, vocab, 1 / 60, 0, "cpu", tmp_path) for vocab in (300, 400)]
    assert [each["vocab"] for each in figures] == [300, 400]
    assert figures[0]["tokens"] > figures[1]["tokens"]
    assert all(0 < each["bits_per_byte"] < 8.1 for each in figures)
    assert 0 < count(training, held_out, 300, tmp_path) < figures[0]["bits_per_byte"]
