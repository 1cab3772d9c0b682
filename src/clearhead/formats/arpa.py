"""ARPA files: n-gram models as text, one n-gram per line, the common exchange format.

Each line has the base-10 logarithm of a probability, the words, and the backoff weight. Sentences start with <s>,
which is never predicted, and end with </s>; here, both are the end token.
"""

from __future__ import annotations

import gzip
import math
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedIOBase, BufferedReader
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import numpy as np
import torch
from numpy.typing import NDArray

from clearhead.classics.ngram import NGram, Order
from clearhead.classics.ngram_config import MOST_ORDER, MOST_VOCAB, NGramConfig
from clearhead.errors import UserError
from clearhead.files import disk_errors, open_regular, write_whole
from clearhead.formats.saved import Saved
from clearhead.runtime.device import memory_of
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokenizer_kinds import BYTE_OF

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
NEVER = -99.0  # how these files write a probability of 0
LONGEST_LINE = 2**16  # bytes
MOST_SKIPPED = 1000  # lines; a compressed file can contain very many
BYTES_AN_NGRAM = 64  # of memory while reading
CHUNK = 2**14  # lines written at once
LN10 = math.log(10)

IdArray = NDArray[np.int64]


@dataclass(frozen=True)
class Arpa:
    """The contents of a file: a network, and its words by id."""

    network: NGram
    words: list[str]


def is_arpa(path: Path) -> bool:
    return path.name.endswith((".arpa", ".arpa.gz"))


def write(path: Path, network: NGram, words: Sequence[str]) -> None:
    """Write a model. `words` names each id; characters that would break a line or be misread are escaped."""
    assert len(words) == network.config.n_vocab, f"{len(words)} words, expected {network.config.n_vocab}"
    with disk_errors(path.parent, "the model was not saved"):
        write_whole(path, lambda temporary: _write(temporary, path.suffix == ".gz", network, words))


def _write(path: Path, packed: bool, network: NGram, words: Sequence[str]) -> None:
    with path.open("xb") as raw:
        file = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if packed else raw
        for text in _text(network, escape(words, network.config.end_id)):
            file.write(text.encode())
        if file is not raw:
            file.close()


def escape(words: Sequence[str], end_id: int | None = None) -> list[str]:
    """Words as written in a file: the end token is </s>, and no word contains a space."""
    escaped = [
        "".join(rf"\x{ord(c):02x}" if c <= " " or c in "\\\x7f" else c for c in word) for word in words
    ]
    for i, word in enumerate(escaped):
        if word in ("", BEGIN, END):
            escaped[i] = rf"\{word}"
    if end_id is not None:
        escaped[end_id] = END
    return escaped


def _text(network: NGram, words: list[str]) -> Iterator[str]:
    config, names = network.config, np.array(words, dtype=object)
    has_unknown = UNKNOWN in words
    extra = 1 + (not has_unknown)  # <s>, and the token for unknown words
    yield "\\data\\\n"
    for n, count in enumerate((config.n_vocab + extra, *config.counts), start=1):
        yield f"ngram {n}={count}\n"
    keys = [_numpy(order.keys) if n else None for n, order in enumerate(_orders(network))]
    for n, order in enumerate(_orders(network), start=1):
        yield f"\n\\{n}-grams:\n"
        log_probability = np.minimum(_numpy(order.log_probability) / LN10, 0)
        backoff = None if order.backoff is None else _numpy(order.backoff) / LN10
        if n == 1:
            begins = 0.0 if backoff is None else backoff[config.end_id]
            yield f"{NEVER:g}\t{BEGIN}\t{begins:.8g}\n"
            yield "" if has_unknown else f"{NEVER:g}\t{UNKNOWN}\n"
        for start in range(0, len(log_probability), CHUNK):
            nodes = np.arange(start, min(start + CHUNK, len(log_probability)))
            ids = _spell(nodes, keys[:n], config.n_vocab)
            called = names[ids]
            if n > 1:
                called[ids[:, 0] == config.end_id, 0] = BEGIN
            for row, word, node in zip(called, ids[:, -1], nodes, strict=True):
                left = "" if backoff is None or word == config.end_id else f"\t{backoff[node]:.8g}"
                yield f"{log_probability[node]:.8g}\t{' '.join(row)}{left}\n"
    yield "\n\\end\\\n"


def _spell(nodes: IdArray, keys: list[IdArray | None], n_vocab: int) -> IdArray:
    """The word ids of the n-grams with these indices, one row per n-gram."""
    columns = []
    for each in reversed(keys):
        if each is None:
            columns.append(nodes)
        else:
            nodes, words = np.divmod(each[nodes], n_vocab)
            columns.append(words)
    return np.stack(columns[::-1], axis=1)


def read(path: Path, words: Sequence[str] | None = None, end_id: int | None = None) -> Arpa:
    """Read a model with the words in the file, or with those given, one per id. Decompresses .gz files."""
    with _opened(path) as lines:
        counts = lines.read_counts()
        called = None if words is None or end_id is None else escape(words, end_id)
        ids = {} if called is None else {word.encode(): i for i, word in enumerate(called)}
        found = _Words(lines, counts[0], ids, None if called is None else end_id)
        config = NGramConfig(len(found.log_probability), found.end_id, tuple(counts[1:]))
        network = NGram(NGramConfig(config.n_vocab, config.end_id, (0,) * len(config.counts)))
        network.config = config
        orders = _orders(network)
        _put(orders[0], None, found.log_probability, found.backoff)
        for n, count in enumerate(counts[1:], start=2):
            _read_order(lines, n, count, found, orders)
        lines.read_end()
    try:
        network.check()
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    names = list(words) if called is not None and words is not None else found.names()
    return Arpa(network.eval(), names)


def read_config(path: Path) -> NGramConfig:
    """The config from the first lines of a file: the number of words (without <s>) and of longer n-grams."""
    with _opened(path) as lines:
        first, *counts = lines.read_counts()
        return NGramConfig(max(1, first - 1), max(0, first - 2), tuple(counts))


def load(path: Path) -> Saved:
    """Load the model from an ARPA file, with a tokenizer that splits text at spaces into the file's words."""
    found = read(path)
    if set(found.words).issuperset(escape(sorted(BYTE_OF))):
        raise UserError(
            f"{path} uses the tokens of a tokenizer that it does not contain: open the model's folder instead"
        )
    unknown = next((word for word in found.words if word.lower() == UNKNOWN), None)
    return Saved(found.network, Tokenizer.of_words(found.words, unknown), None)


class _Lines:
    """The lines of a file, one at a time, so that errors can name the line."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path, self.file, self.number, self.empty = path, file, 0, 0

    def next(self) -> bytes:
        """The next non-empty line, or an empty one at the end of the file."""
        while line := self.file.readline(LONGEST_LINE + 1):
            self.number += 1
            if len(line) > LONGEST_LINE:
                self.refuse(f"is longer than {LONGEST_LINE} bytes")
            if stripped := line.strip():
                return stripped
            self.empty += 1
            if self.empty > MOST_SKIPPED:
                self.refuse(f"is the {MOST_SKIPPED + 1}st empty line")
        return b""

    def refuse(self, why: str) -> NoReturn:
        raise UserError(f"{self.path} is not a complete ARPA file: line {self.number} {why}; copy it again")

    def expect(self, expected: str) -> None:
        if (line := self.next()) != expected.encode():
            self.refuse(f"is {_show(line)}, expected {expected}")

    def read_counts(self) -> list[int]:
        """Read the number of n-grams of each order, skipping any text before these counts."""
        line = self.next()
        while line and line != b"\\data\\":
            if self.number > MOST_SKIPPED:
                self.refuse("should be \\data\\ or come after it")
            line = self.next()
        if not line:
            self.refuse("is the last line, and no line is \\data\\")
        counts: list[int] = []
        while (line := self.next()).startswith(b"ngram "):
            order, _, count = line[6:].partition(b"=")
            if order.strip() != str(len(counts) + 1).encode() or not count.strip().isdigit():
                self.refuse(f"is {_show(line)}, expected ngram {len(counts) + 1}=COUNT")
            if len(count) > 15 or len(counts) == MOST_ORDER:
                self.refuse(f"is {_show(line)}: expected at most {MOST_ORDER} orders of 10¹⁵ n-grams each")
            counts.append(int(count))
        if not counts or line != b"\\1-grams:":
            self.refuse(f"is {_show(line)}, expected \\1-grams: after the n-gram counts")
        needed, memory = BYTES_AN_NGRAM * sum(counts), memory_of(torch.device("cpu"))
        if memory is not None and needed > memory:
            raise UserError(
                f"{self.path} has {sum(counts)} n-grams, which need {needed / 1e9:.1f} GB of memory; "
                f"this machine has {memory / 1e9:.1f}: use a smaller model"
            )
        return counts

    def read_ngrams(self, n: int, count: int) -> Iterator[tuple[float, list[bytes], float]]:
        """Yield the n-grams of an order: the log-probability, the words, and the log backoff weight (natural logs)."""
        for _ in range(count):
            fields = self.next().split()
            if not n + 1 <= len(fields) <= n + 2:
                self.refuse(
                    f"is {_show(b' '.join(fields))}, expected a number, {n} words, and optionally "
                    "another number"
                )
            try:
                probability = float(fields[0])
                left = float(fields[n + 1]) if len(fields) == n + 2 else 0.0
            except ValueError:
                probability = left = math.nan
            if not -1e6 < probability <= 0 or not abs(left) < 1e6:
                self.refuse(f"is {_show(b' '.join(fields))}, expected log-probabilities of at most 0")
            yield probability * LN10, fields[1 : n + 1], left * LN10

    def read_end(self) -> None:
        self.expect("\\end\\")


@contextmanager
def _opened(path: Path) -> Iterator[_Lines]:
    try:
        with open_regular(path, "an ARPA file") as raw:
            packed = path.suffix == ".gz"
            file = gzip.GzipFile(fileobj=raw) if packed else BufferedReader(cast("BufferedIOBase", raw))
            yield _Lines(path, cast("IO[bytes]", file))
    except FileNotFoundError:
        raise UserError(f"no such file: {path}; expected an ARPA file") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{path} cannot be read: {reason}") from None


class _Words:
    """The unigrams of a file: the id of each word, and log-probabilities and backoff weights by id."""

    def __init__(self, lines: _Lines, count: int, ids: dict[bytes, int], end_id: int | None) -> None:
        if count > MOST_VOCAB:
            lines.refuse(f"lists {count} words, expected at most {MOST_VOCAB}")
        fixed = end_id is not None
        self.ids = ids
        seen: dict[bytes, tuple[float, float]] = {}
        for probability, (word,), left in lines.read_ngrams(1, count):
            if word in seen:
                lines.refuse(f"repeats the word {_show(word)} from an earlier line")
            seen[word] = probability, left
            if word not in (BEGIN.encode(), END.encode()) and word not in ids:
                if not fixed:
                    ids[word] = len(ids)
                elif word != UNKNOWN.encode():
                    lines.refuse(f"has the word {_show(word)}, which the tokenizer does not have")
        self.end_id = len(ids) if end_id is None else end_id
        ids[END.encode()] = self.end_id
        self.log_probability = np.full(len(ids), NEVER * LN10)
        self.backoff = np.zeros(len(ids))
        for word, i in ids.items():
            self.log_probability[i], self.backoff[i] = seen.get(word, (NEVER * LN10, 0.0))
        self.backoff[self.end_id] = seen.get(BEGIN.encode(), (0.0, 0.0))[1]

    def find(self, lines: _Lines, words: list[bytes]) -> list[int]:
        """The ids of an n-gram's words; <s> may only come first, and </s> only last."""
        begin, end = BEGIN.encode(), END.encode()
        found = []
        for place, word in enumerate(words):
            if (word == begin and place > 0) or (word == end and place < len(words) - 1):
                lines.refuse(f"has {_show(word)} where no sentence begins or ends")
            i = self.end_id if word == begin else self.ids.get(word)
            if i is None:
                lines.refuse(f"has the word {_show(word)}, which is not among the 1-grams")
            found.append(i)
        return found

    def names(self) -> list[str]:
        return [word.decode(errors="backslashreplace") for word in self.ids]


def _read_order(lines: _Lines, n: int, count: int, words: _Words, orders: list[Order]) -> None:
    lines.expect(f"\\{n}-grams:")
    ids, log_probability, backoff = array("i"), array("d"), array("d")
    first, V = lines.number + 1, len(words.log_probability)
    for probability, spelled, left in lines.read_ngrams(n, count):
        ids.extend(words.find(lines, spelled))
        log_probability.append(probability)
        backoff.append(left)
    rows = np.frombuffer(ids, np.intc).astype(np.int64).reshape(count, n) if count else np.zeros((0, n), int)
    nodes = rows[:, 0]
    known = torch.ones(count, dtype=torch.bool)
    for order, column in zip(orders[1 : n - 1], rows.T[1:], strict=False):
        nodes = order.find(torch.from_numpy(nodes * V + column), known).numpy()
        known = torch.from_numpy(nodes >= 0)
        if not bool(known.all()):
            lines.number = first + int((~known).nonzero()[0])
            lines.refuse("or one near it has an n-gram whose context is not among the shorter ones")
    keys = nodes * V + rows[:, -1]
    places = np.argsort(keys, kind="stable")
    keys = keys[places]
    if (same := np.flatnonzero(keys[1:] == keys[:-1])).size:
        lines.number = first + int(places[same[0] + 1])
        lines.refuse("or one near it repeats the n-gram from an earlier line")
    _put(orders[n - 1], keys, np.array(log_probability)[places], np.array(backoff)[places])


def _put(
    order: Order, keys: IdArray | None, log_probability: NDArray[np.float64], backoff: NDArray[np.float64]
) -> None:
    if keys is not None:
        order.keys = torch.from_numpy(keys)
    order.log_probability.data = torch.from_numpy(log_probability).float()
    if order.backoff is not None:
        order.backoff.data = torch.from_numpy(backoff).float()


def _orders(network: NGram) -> list[Order]:
    return [cast("Order", order) for order in network.orders]


def _numpy(tensor: torch.Tensor | None) -> NDArray[Any]:
    assert tensor is not None
    return tensor.detach().cpu().numpy()


def _show(line: bytes) -> str:
    return repr(line[:60].decode(errors="backslashreplace")) if line else "the end of the file"
