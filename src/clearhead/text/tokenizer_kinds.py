"""The kinds of tokenizer that we train, and how to recognize them."""

from collections.abc import Iterable
from concurrent.futures import Future
from threading import Thread

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from clearhead.errors import UserError

KINDS = ("char", "byte", "bpe", "word")
END, MASK = "<|endoftext|>", "<|mask|>"
DEFAULT_BPE_VOCAB, DEFAULT_WORD_VOCAB = 4096, 8192
MOST_VOCAB = 2**20

# Byte-level tokens are spelled in printable characters: a printable byte stands for itself, and
# the others are mapped to U+0100 and up (https://github.com/openai/gpt-2, encoder.py).
_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_HIDDEN = (byte for byte in range(256) if byte not in _PRINTABLE)
BYTE_OF = {chr(byte): byte for byte in _PRINTABLE} | {chr(0x100 + i): byte for i, byte in enumerate(_HIDDEN)}


def train(
    kind: str, pieces: Iterable[str], n_vocab: int | None = None, mask: bool = False
) -> tokenizers.Tokenizer:
    """Train a tokenizer of this kind. The last id is the end-of-document token or, with `mask`, the mask token."""
    if kind not in KINDS:
        raise UserError(f"tokenizer = {kind!r}: expected one of {', '.join(KINDS)}")
    if kind in ("char", "byte") and n_vocab is not None:
        raise UserError(
            f"vocab = {n_vocab}: only bpe and word tokenizers let you choose the size; omit it for {kind}"
        )
    if kind == "char":
        inner = _train_char(pieces)
    elif kind == "byte":
        inner = _make_byte()
    else:
        special = 2 if mask else 1
        usual = DEFAULT_BPE_VOCAB if kind == "bpe" else DEFAULT_WORD_VOCAB
        n_vocab = _check_vocab(usual if n_vocab is None else n_vocab, special)
        inner = (_train_bpe if kind == "bpe" else _train_words)(pieces, n_vocab - special)
    inner.add_special_tokens([END, MASK] if mask else [END])
    return inner


def kind_of(inner: tokenizers.Tokenizer) -> str:
    """The kind of a tokenizer, or "other" for one made elsewhere."""
    before, after = inner.pre_tokenizer, inner.decoder
    if not isinstance(inner.model, models.BPE) or inner.normalizer is not None:
        return "other"
    if before is None and isinstance(after, decoders.Fuse):
        return (
            "char" if all(len(token) == 1 for token in inner.get_vocab(with_added_tokens=False)) else "other"
        )
    if inner.token_to_id(END) is None:
        return "other"
    if not isinstance(before, pre_tokenizers.ByteLevel) or not isinstance(after, decoders.ByteLevel):
        return "other"
    if before.use_regex:
        return "word" if inner.model.ignore_merges else "bpe"
    return "byte" if inner.get_vocab(with_added_tokens=False) == BYTE_OF else "other"


def _train_char(pieces: Iterable[str]) -> tokenizers.Tokenizer:
    characters: set[str] = set()
    for piece in pieces:
        characters.update(piece)
    if not characters:
        raise UserError("the text has no characters: provide some text")
    # BPE without merges splits text into characters, and is faster than WordLevel after a split. The unknown token
    # is deliberately not in the vocabulary, so that an unknown character is an error in every program that opens
    # the file; without an unknown token, the character would be dropped silently.
    vocabulary = {character: i for i, character in enumerate(sorted(characters))}
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[], unk_token="<unk>"))  # noqa: S106
    inner.decoder = decoders.Fuse()
    return inner


def _make_byte() -> tokenizers.Tokenizer:
    inner = tokenizers.Tokenizer(models.BPE(vocab=BYTE_OF, merges=[]))
    return read_as_bytes(inner, use_regex=False)


def _check_vocab(n_vocab: int, special: int) -> int:
    if not 256 + special <= n_vocab <= MOST_VOCAB:
        named = "the end token" if special == 1 else "the end and mask tokens"
        raise UserError(
            f"vocab = {n_vocab}: expected {256 + special} (256 bytes and {named}) to {MOST_VOCAB}"
        )
    return n_vocab


def _train_bpe(pieces: Iterable[str], n_vocab: int) -> tokenizers.Tokenizer:
    inner = read_as_bytes(tokenizers.Tokenizer(models.BPE()), use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=n_vocab,
        min_frequency=2,
        initial_alphabet=sorted(BYTE_OF),
        show_progress=False,
    )
    _fit(inner, pieces, trainer)
    return inner


def _train_words(pieces: Iterable[str], n_vocab: int) -> tokenizers.Tokenizer:
    """A tokenizer for the most frequent words, with the space before them; it splits all others into bytes."""
    counter = read_as_bytes(tokenizers.Tokenizer(models.WordLevel()), use_regex=True)
    trainer = trainers.WordLevelTrainer(vocab_size=n_vocab, min_frequency=2, show_progress=False)
    _fit(counter, pieces, trainer)
    found = counter.get_vocab(with_added_tokens=False)
    words = [word for word in sorted(found, key=found.__getitem__) if word not in BYTE_OF]
    # BPE without merges splits words into bytes, except for those in the vocabulary.
    vocabulary = BYTE_OF | {word: 256 + i for i, word in enumerate(words[: n_vocab - 256])}
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    return read_as_bytes(inner, use_regex=True)


def _fit(inner: tokenizers.Tokenizer, pieces: Iterable[str], trainer: trainers.Trainer) -> None:
    """Train in another thread: Ctrl-C reaches only the main thread, which must not wait inside the library."""
    texts = list(pieces)  # which the library would otherwise read in its own threads
    result: Future[None] = Future()

    def work() -> None:
        try:
            inner.train_from_iterator(texts, trainer)
        except BaseException as error:  # the library's panics are not Exceptions
            result.set_exception(error)
        else:
            result.set_result(None)

    Thread(target=work, daemon=True).start()
    result.result()


def read_as_bytes(inner: tokenizers.Tokenizer, use_regex: bool) -> tokenizers.Tokenizer:
    """Make a BPE tokenizer byte-level; `use_regex` splits texts into words first, as GPT-2 does."""
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=False, trim_offsets=False, use_regex=use_regex
    )
    inner.decoder = decoders.ByteLevel()
    return inner
