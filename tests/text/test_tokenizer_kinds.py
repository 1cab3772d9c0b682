"""Tokenizer kinds: their tokens, deterministic training, and rejected settings."""

import _thread
import signal
import threading

import pytest

from clearhead.errors import UserError
from clearhead.text import tokenizer_kinds
from clearhead.text.tokenizer import Tokenizer
from tests.text.small_tokenizers import ALL, BPE, BYTE, TEXT


def test_known_words_are_tokens_and_others_become_bytes() -> None:
    tokenizer = Tokenizer.train("word", ["The cat saw the cat. A dog"], 300)
    assert tokenizer.pieces(tokenizer.encode("A cat, the cat")) == [
        "A",
        " cat",
        ",",
        " ",
        "t",
        "h",
        "e",
        " cat",
    ]
    assert (tokenizer.kind, tokenizer.end_id) == ("word", tokenizer.n_vocab - 1)
    assert tokenizer.n_vocab == 256 + 1 + 1  # bytes, the only word seen twice, the end token


def test_vocabulary_holds_the_most_frequent_words() -> None:
    tokenizer = Tokenizer.train("word", [" a few" * 3 + " of them" * 2 + " and you" * 9], 256 + 2 + 1)
    assert tokenizer.pieces(range(256, 258)) == [" and", " you"]


def test_char_ids_follow_the_code_points() -> None:
    tokenizer = Tokenizer.train("char", ["cab", "b\n"])
    assert tokenizer.encode("\nabc") == [0, 1, 2, 3]
    assert (tokenizer.n_vocab, tokenizer.end_id, tokenizer.kind) == (5, 4, "char")


def test_byte_ids_are_the_byte_values() -> None:
    every = "".join(map(chr, range(0x250)))
    assert BYTE.encode(every) == list(every.encode())
    assert (BYTE.n_vocab, BYTE.end_id, BYTE.kind) == (257, 256, "byte")


def test_bpe_has_the_requested_size_and_end_token_last() -> None:
    assert (BPE.n_vocab, BPE.end_id, BPE.kind) == (340, 339, "bpe")
    assert len(BPE.encode("the road was tired")) < len("the road was tired")
    assert Tokenizer.train("bpe", ["it it it it"], 340).n_vocab < 340


def test_bpe_splits_like_gpt2() -> None:
    tokenizer = Tokenizer.train("bpe", ["I'll  say it's 10 miles, I'll  say it's 10 miles, " * 9], 1000)
    assert tokenizer.pieces(tokenizer.encode("I'll  say it's 10 miles,")) == [
        *("I", "'ll", " ", " say", " it", "'s", " 10", " miles", ",")
    ]


@ALL
def test_training_twice_gives_the_same_file(tokenizer: Tokenizer) -> None:
    n_vocab = {"bpe": 340, "word": 270}.get(tokenizer.kind)
    halves = [TEXT[: len(TEXT) // 2], TEXT[len(TEXT) // 2 :]]
    again = Tokenizer.train(tokenizer.kind, halves, n_vocab)
    assert again.to_json() == tokenizer.to_json()


@pytest.mark.parametrize(
    ("kind", "n_vocab", "message"),
    [
        ("letter", None, "expected one of char, byte, bpe, word"),
        ("word", 256, "vocab = 256: expected 257"),
        ("bpe", 256, "vocab = 256: expected 257"),
        ("bpe", 2**40, "expected 257"),
        ("byte", 300, "omit it for byte"),
    ],
)
def test_invalid_settings_are_rejected(kind: str, n_vocab: int | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Tokenizer.train(kind, ["it"], n_vocab)


def test_char_training_on_empty_text_is_rejected() -> None:
    with pytest.raises(UserError, match="no characters"):
        Tokenizer.train("char", [""])


@pytest.mark.parametrize("kind", ["char", "byte", "bpe"])
def test_mask_token_comes_last_and_changes_no_other_id(kind, tmp_path):
    text = "it was too tired to cross the road because it was tired. " * 5
    n_vocab = 270 if kind == "bpe" else None
    plain = Tokenizer.train(kind, [text], n_vocab)
    masked = Tokenizer.train(kind, [text], n_vocab + 1 if n_vocab else None, mask=True)
    assert plain.mask_id is None
    assert (masked.mask_id, masked.end_id) == (masked.n_vocab - 1, plain.end_id)
    assert masked.n_vocab == plain.n_vocab + 1
    assert masked.kind == kind
    assert masked.encode(text) == plain.encode(text)
    assert masked.decode([*masked.encode(text), masked.mask_id]) == text
    masked.save(tmp_path, 8)
    assert Tokenizer.load(tmp_path).mask_id == masked.mask_id


@pytest.mark.parametrize("kind", ["bpe", "word"])
def test_interrupt_while_the_text_is_read_ends_training(kind):
    def pieces():
        yield TEXT
        assert threading.current_thread() is here  # others do not receive signals
        raise KeyboardInterrupt

    here = threading.current_thread()
    with pytest.raises(KeyboardInterrupt):
        Tokenizer.train(kind, pieces(), 300)


def test_interrupt_during_training_does_not_wait_for_the_library():
    class Slow:
        done = threading.Event()

        def train_from_iterator(self, *_):
            _thread.interrupt_main()
            self.done.wait()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tokenizer_kinds._fit(Slow(), [TEXT], None)
    finally:
        Slow.done.set()
        signal.signal(signal.SIGINT, before)


def test_error_of_the_library_is_raised():
    class Broken:
        def train_from_iterator(self, *_):
            raise OverflowError("panic")

    with pytest.raises(OverflowError, match="panic"):
        tokenizer_kinds._fit(Broken(), [TEXT], None)
