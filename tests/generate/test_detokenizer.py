import copy
import itertools
import json
import pickle
import time

import pytest
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers

from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.detokenizer import (
    CachedTextStream,
    Detokenizer,
    Generated,
    StopMatcher,
    merge_empty,
)
from clearhead.generate.generation import generate_text, generate_tokens
from clearhead.generate.sampler import SampledToken, make_samplers
from clearhead.generate.sampling import Sampling
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.text_stream import TextStream
from clearhead.text.tokenizer import Tokenizer

BYTES = Tokenizer.train("byte", [])


def let_through(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    matcher = StopMatcher(stops)
    text = ""
    for piece in pieces:
        text += matcher.push(piece)
        if matcher.stopped:
            return text, True
    return text + matcher.pending, False


@given(st.lists(st.text("abc", max_size=3)), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3))
def test_text_stops_before_the_first_stop_string_however_it_is_split(pieces, stops):
    whole = "".join(pieces)
    starts = [whole.find(stop) for stop in stops if stop in whole]
    shown, stopped = let_through(pieces, stops)
    assert stopped == bool(starts)
    if not starts:
        assert shown == whole
        return
    # Two stop strings may complete at once or one after the other; no part of either is emitted.
    assert whole.startswith(shown)
    assert not any(stop in shown for stop in stops)
    assert len(shown) in starts or any(whole[len(shown) :].startswith(stop) for stop in stops)


def test_only_possible_stop_string_prefixes_are_held_back():
    matcher = StopMatcher(["END"])
    assert matcher.push("abE") == "ab"
    assert matcher.push("N") == ""
    assert matcher.push("x") == "ENx"
    assert matcher.push("fine") == "fine"


def push(detokenizer: Detokenizer, ids: list[int] | bytes) -> list[Generated]:
    return [detokenizer.push(SampledToken(i)) for i in ids]


def test_stop_strings_may_span_tokens_and_characters_may_span_bytes():
    detokenizer = Detokenizer(BYTES, ["é!"])
    assert "".join(push(detokenizer, "aéé!z".encode()[:6])) == "aé"
    assert detokenizer.finish_reason == "stop"


def test_pieces_never_split_a_character():
    detokenizer = Detokenizer(BYTES)
    assert [piece for piece in push(detokenizer, "é漢🙂".encode()) if piece] == ["é", "漢", "🙂"]


def test_end_token_stops_generation_and_flushes_held_back_text():
    detokenizer = Detokenizer(BYTES, ["xyz"])
    assert push(detokenizer, b"x") == [""]
    [last] = push(detokenizer, [BYTES.end_id])
    assert (last, last.finish_reason, last.ids) == ("x", "stop", [BYTES.end_id])
    [after] = push(detokenizer, b"a")
    assert (after, after.ids) == ("", [])


def test_any_end_token_stops_generation():
    """Even a token that has text elsewhere produces none as an end token."""
    detokenizer = Detokenizer(Tokenizer(BYTES._inner, BYTES.config, ends=[ord("!")]))
    assert [*push(detokenizer, b"ab!"), detokenizer.finish_reason] == ["a", "b", "", "stop"]


def test_last_token_need_not_be_an_end_token():
    detokenizer = Detokenizer(BYTES, ["bc"])
    pieces = [detokenizer.push(SampledToken(ord("a"))), detokenizer.push(SampledToken(ord("b"), last=True))]
    assert ("".join(pieces), pieces[0].finish_reason, pieces[1].finish_reason) == ("ab", None, "stop")


def test_limits_flush_held_back_text_and_set_the_finish_reason():
    detokenizer = Detokenizer(BYTES, ["bcd"])
    whole = detokenizer.push_all([SampledToken(i) for i in b"abc"], "length")
    assert (whole, whole.finish_reason, whole.ids) == ("abc", "length", list(b"abc"))
    cut = Detokenizer(BYTES, ["bc"]).push_all([SampledToken(i) for i in b"abcd"], "length")
    assert (cut, cut.finish_reason, cut.ids) == ("a", "stop", list(b"abc"))
    cancelled = Detokenizer(BYTES, ["bcd"])
    push(cancelled, b"ab")
    rest = cancelled.close("cancelled")
    assert (rest, rest.finish_reason, rest.ids, cancelled.finish_reason) == (
        "b",
        "cancelled",
        [],
        "cancelled",
    )
    half = Detokenizer(BYTES).push_all([SampledToken(i) for i in "é".encode()[:1]], "time")
    assert (half, half.finish_reason) == ("\ufffd", "time")


@pytest.fixture(scope="module")
def pieces() -> Tokenizer:
    """A tokenizer like Llama 2's: it prepends a space to every text and strips it when decoding."""
    tokens = ["▁", "a", "b", "▁a", "▁b"]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[("▁", "a"), ("▁", "b")]))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    inner.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    inner.add_special_tokens(["</s>"])
    return Tokenizer(inner, {"eos_token": "</s>"})


def test_leading_space_is_kept_after_a_prompt(pieces):
    """At the start of a document, the space is the tokenizer's own, unless a grammar requires it."""

    def written(prompt: list[int], exact: bool = False) -> str:
        detokenizer = Detokenizer(pieces, prompt=prompt, exact=exact)
        return "".join(detokenizer.push(SampledToken(i)) for i in [4, 1, 3])

    end = pieces.end_id
    assert pieces.encode("ba a") == [4, 1, 3]
    assert written([]) == written([end]) == "ba a"
    assert written(pieces.encode("a")) == written([*pieces.encode("a"), end]) == " ba a"
    assert written([0]) == " ba a"  # the prompt itself ends in a space
    assert written([end], exact=True) == written([], exact=True) == " ba a"


@pytest.mark.parametrize("name", ["bytes", "pieces"])
@given(st.data())
def test_remembered_tokens_give_the_same_text(name, pieces, data):
    tokenizer = BYTES if name == "bytes" else pieces
    known = [0x41, 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xFF, 256, 999] if name == "bytes" else [*range(6), 999]
    continues = data.draw(st.booleans())
    plain, remembering = TextStream(tokenizer, continues), CachedTextStream(tokenizer, continues)
    for i in data.draw(st.lists(st.sampled_from(known), max_size=40)):
        assert remembering.push(i) == plain.push(i)
    assert remembering.close() == plain.close()


def test_prompt_may_end_within_a_character():
    detokenizer = Detokenizer(BYTES, prompt=[0xC3])
    assert "".join(push(detokenizer, b"a")) == "a"


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return Transformer(preset("modern", n_vocab=257, n_context=16, n_block=1, n_head=2, d_model=16)).eval()


def written(network, tokens, stop=(), samples=1, seconds=None, **settings) -> list[list[Generated]]:
    samplers = make_samplers(Sampling(1.0, **settings), BYTES, 257, [65], 0, samples)
    detokenizers = [Detokenizer(BYTES, stop, [65]) for _ in samplers]
    return list(
        generate_text(
            generate_tokens(TransformerDecoder(network, samples), [65], samplers),
            detokenizers,
            tokens,
            seconds,
        )
    )


def test_samples_finish_independently(network):
    rows = written(network, 40, stop=["a", "b"], samples=5)
    texts = [Generated.concatenate(column) for column in zip(*rows, strict=True)]
    assert all(len(row) == 5 for row in rows)
    assert len(rows) == max(len(text.ids) for text in texts)
    assert {text.finish_reason for text in texts} == {"stop", "length"}
    for text in texts:
        assert (len(text.ids) == 40) == (text.finish_reason == "length")
        assert not {"a", "b"} & set(text)


def test_at_most_max_tokens_are_generated(network):
    rows = written(network, 7, logit_bias={256: -100})
    assert len(rows) == 7
    assert [row[0].finish_reason for row in rows] == [None] * 6 + ["length"]
    whole = Generated.concatenate([row[0] for row in rows])
    assert whole == BYTES.decode(whole.ids)
    assert len(whole.ids) == 7


def test_timeout_starts_at_the_first_token_and_allows_one(monkeypatch):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def slow():
        nonlocal now
        for _ in itertools.count():
            now += 0.02
            yield [SampledToken(65)]

    steps = generate_text(slow(), [Detokenizer(BYTES)], 1000, 0.1)
    now += 0.15
    text = Generated.concatenate([piece for (piece,) in steps])
    assert text.finish_reason == "time"
    assert 4 <= len(text) <= 6
    [[only]] = generate_text(slow(), [Detokenizer(BYTES)], 1000, 1e-9)
    assert (only, only.finish_reason) == ("A", "time")
    [[only]] = generate_text(slow(), [Detokenizer(BYTES)], 1, 1e-9)
    assert only.finish_reason == "length"


def test_only_the_last_streamed_piece_may_be_empty():
    detokenizer = Detokenizer(BYTES)
    drawn = [SampledToken(i, -1.0) for i in [*"é".encode(), ord("a"), 256]]
    pieces = list(merge_empty(detokenizer.push(each) for each in drawn))
    assert pieces == ["é", "a", ""]
    assert [piece.ids for piece in pieces] == [[0xC3, 0xA9], [ord("a")], [256]]
    assert [piece.finish_reason for piece in pieces] == [None, None, "stop"]
    assert pieces[0].log_probabilities == [-1.0, -1.0]


def test_result_is_a_str():
    text = Generated("ab", [SampledToken(1, -0.5), SampledToken(2, -1.5)], "length", -1.0)
    assert text == "ab"
    assert isinstance(text, str)
    assert json.dumps([text]) == '["ab"]'
    assert {text: 1}["ab"] == 1
    assert text.log_probabilities == [-0.5, -1.5]
    assert Generated("a", [SampledToken(1)]).log_probabilities is None
    for again in (copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert (again, again.sampled, again.finish_reason, again.score) == (
            text,
            text.sampled,
            "length",
            -1.0,
        )
