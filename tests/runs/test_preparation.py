"""Preparing the text: as much of it as time allows, and the same part again on resume."""

from itertools import count, pairwise
from types import SimpleNamespace

import pytest

from clearhead.errors import UserError
from clearhead.runs import preparation
from clearhead.runs.preparation import prepare_text
from clearhead.runs.request import TrainingRequest
from clearhead.runs.saved_run import SavedRun
from clearhead.text.corpus import STRETCH, Document
from clearhead.text.tokenizer import Tokenizer

SHORT = 0.001  # minutes, too few to tokenize much


COUNT = 200_000


@pytest.fixture(scope="module")
def long_text():
    """About 1.3 MB in one document: consecutive numbers, which show what was left out."""
    return [Document.of("numbers", " ".join(map(str, range(COUNT))))]


def n_bytes(texts):
    return sum(len(text.encode()) for document in texts for text in document.read())


def test_without_a_time_limit_all_text_is_used(long_text, tmp_path):
    text = prepare_text(long_text, TrainingRequest(steps=1, tokenizer="byte"), tmp_path)
    assert text.share == 1.0
    assert len(text.tokens) + len(text.validation) == n_bytes(long_text) + 2


@pytest.mark.parametrize(("reading", "share"), [(0.0, 1 / 3), (3.0, 1 / 6), (1000.0, 0.1)])
def test_slow_reading_leaves_time_to_tokenize(long_text, monkeypatch, reading, share):
    """A minute, and 18 s to tokenize the whole text, on a clock that advances by 0.1 s each time it is read."""
    clock = count(0.0, 0.1)
    monkeypatch.setattr(preparation, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    request, tokenizer = TrainingRequest(minutes=1, tokenizer="byte"), Tokenizer.train("byte", [])
    size = 180 * preparation.TRIED_TEXT
    assert preparation._fitting_share(long_text, request, tokenizer, size, reading) == pytest.approx(share)


def test_short_time_limit_samples_across_the_whole_text(long_text, tmp_path):
    text = prepare_text(long_text, TrainingRequest(minutes=SHORT, tokenizer="byte"), tmp_path)
    assert text.share in (0.5, 0.25, 0.125)
    taken = text.tokenizer.decode([*text.tokens[:], *text.validation[:]])
    assert len(taken) == pytest.approx(text.share * n_bytes(long_text), rel=0.3)
    numbers = [int(number) for number in taken.split()]
    assert numbers[0] == 0
    assert numbers[-1] > (1 - 1.5 * text.share) * COUNT
    jumps = [(a, b) for a, b in pairwise(numbers) if b != a + 1]
    assert all(b > a for a, b in jumps)
    assert len(jumps) == pytest.approx(len(taken) / STRETCH, abs=1.5)
    again = prepare_text(
        long_text, TrainingRequest(minutes=SHORT, tokenizer="byte"), tmp_path, share=text.share
    )
    assert again.tokens[:].tolist() == text.tokens[:].tolist()
    assert again.sha256 == text.sha256


def test_long_time_limit_uses_all_text(long_text, tmp_path):
    assert prepare_text(long_text, TrainingRequest(minutes=60.0, tokenizer="byte"), tmp_path).share == 1.0


def test_cached_tokens_take_no_time(long_text, tmp_path):
    prepare_text(long_text, TrainingRequest(steps=1, tokenizer="byte"), tmp_path)
    assert prepare_text(long_text, TrainingRequest(minutes=SHORT, tokenizer="byte"), tmp_path).share == 1.0


def test_tokenizer_is_trained_on_samples_of_the_whole_text(tmp_path):
    first, second = (
        "the same old words again and again. " * 30_000,
        "quixotic zephyrs vex jumpy wolves. " * 30_000,
    )
    texts = [Document.of("two", first + second + first)]
    request = TrainingRequest(minutes=0.05, tokenizer="bpe", vocab=400)
    share = 60 * 0.05 * preparation.TOKENIZER_TEXT_PER_SECOND / n_bytes(texts)
    assert share < 0.1
    tokenizer = prepare_text(texts, request, tmp_path).tokenizer
    assert len(tokenizer.encode("again and again. quixotic zephyrs")) < 10


def test_tokenizer_is_not_trained_on_the_validation_part(tmp_path):
    plain, secret = "the same old words again. " * 100_000, "xyzzyx " * 30_000
    assert 200_000 < len(secret) < 0.1 * len(plain)
    request = TrainingRequest(minutes=0.01, tokenizer="bpe", vocab=300)
    tokenizer = prepare_text([Document.of("a", plain + secret)], request, tmp_path).tokenizer
    assert not any("xyz" in piece for piece in tokenizer.pieces(range(tokenizer.n_vocab)))


def test_unknown_character_error_includes_its_position(tmp_path, long_text):
    tokenizer = prepare_text(long_text, TrainingRequest(steps=1, tokenizer="char"), tmp_path).tokenizer
    with pytest.raises(UserError, match=r"other\.txt: 'ß' .* at character 7"):
        prepare_text(
            [Document.of("other.txt", "1 2 3 4ß")], TrainingRequest(minutes=SHORT), tmp_path, tokenizer
        )


def test_resumed_run_uses_the_same_part(long_text, tmp_path, monkeypatch):
    sizes = {"blocks": 1, "width": 32, "heads": 1, "context": 32, "batch": 2, "tokenizer": "byte"}
    request = TrainingRequest(minutes=SHORT, device="cpu", **sizes)
    with SavedRun.open(tmp_path / "run", long_text, request, cache=tmp_path / "cache") as kept:
        share, tokens = kept.run.plan.share, kept.run.tokens[:].tolist()
        assert share < 1
        [warning] = [warning for warning in kept.run.plan.warnings(len(tokens)) if "more minutes" in warning]
        assert warning.startswith(
            f"there is not enough time to tokenize the whole text: only 1/{1 / share:.0f} of it is used"
        )
        next(iter(kept))
        kept.save()
    monkeypatch.setattr(preparation, "TOKENIZING_SHARE", 1e6)  # as if the machine were faster now
    with SavedRun.open(tmp_path / "run", long_text, request, True, cache=tmp_path / "other") as kept:
        assert kept.run.plan.share == share
        assert kept.run.tokens[:].tolist() == tokens
        assert kept.run.model.training is None
        list(kept)
        assert kept.run.model.training["share"] == share
