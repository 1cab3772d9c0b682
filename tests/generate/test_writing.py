import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.generate.continuation import Reader, continuations
from clearhead.generate.sampling import Sampling
from clearhead.generate.writing import Stopper, Writer, write
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

BYTES = Tokenizer.train("byte", [])


def let_through(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    stopper = Stopper(stops)
    text = ""
    for piece in pieces:
        text += stopper.push(piece)
        if stopper.stopped:
            return text, True
    return text + stopper.held, False


@given(st.lists(st.text("abc", max_size=3)), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3))
def test_text_ends_before_the_first_stop_string_however_it_is_cut(pieces, stops):
    whole = "".join(pieces)
    starts = [whole.find(stop) for stop in stops if stop in whole]
    shown, stopped = let_through(pieces, stops)
    assert stopped == bool(starts)
    if not starts:
        assert shown == whole
        return
    # Two stop strings may complete at once or one after the other; nothing of either is shown.
    assert whole.startswith(shown)
    assert not any(stop in shown for stop in stops)
    assert len(shown) in starts or any(whole[len(shown) :].startswith(stop) for stop in stops)


def test_what_cannot_become_a_stop_string_is_not_held_back():
    stopper = Stopper(["END"])
    assert stopper.push("abE") == "ab"
    assert stopper.push("N") == ""
    assert stopper.push("x") == "ENx"
    assert stopper.push("fine") == "fine"


def test_a_stop_string_may_span_tokens_and_characters_bytes():
    writer = Writer(BYTES, ["é!"])
    shown = [writer.push(byte) for byte in "aéé!z".encode()[:6]]
    assert "".join(shown) == "aé"
    assert writer.done


def test_no_piece_breaks_a_character():
    writer = Writer(BYTES, [])
    pieces = [writer.push(byte) for byte in "é漢🙂".encode()]
    assert [piece for piece in pieces if piece] == ["é", "漢", "🙂"]


def test_the_end_token_ends_and_hands_out_what_was_held():
    writer = Writer(BYTES, ["xyz"])
    assert writer.push(ord("x")) == ""
    assert writer.push(BYTES.end_id) == "x"
    assert writer.done


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return Transformer(preset("modern", n_vocab=257, n_context=16, n_block=1, n_head=2, d_model=16)).eval()


def drawn(network, samples=1):
    return continuations(Reader(network, samples), [65], Sampling(1.0), seed=0, samples=samples)


def test_samples_end_one_by_one(network):
    rows = list(write(drawn(network, 5), BYTES, 40, stops=["a", "b"], samples=5))
    assert all(len(row) == 5 for row in rows)
    assert len(rows) <= 41


def test_at_most_so_many_tokens(network):
    pieces = list(write(drawn(network), BYTES, 7))
    assert len(pieces) == 8  # seven steps and what was held back
    assert len("".join(piece for (piece,) in pieces).encode("utf-8", "replace")) > 0
