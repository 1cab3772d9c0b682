"""The measurement of serving, in its short mode: a small random model, few requests."""

from bench.serve import main


def test_short_mode_gives_ratios():
    figures = main(None, short=True)["small"]
    assert figures["1"]["over_plain"] > 0
    assert figures["2"]["tokens_per_second"] > 0
    assert figures["longest_wait"] > 0
