"""The words of a text, and the text as word numbers, stored on disk so that it can exceed memory."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import UserError
from clearhead.files import disk_errors
from clearhead.text.corpus import Document

# Combining marks, such as the vowel signs of Hindi, which Python does not count as letters.
_MARK = f"[{''.join(c for c in map(chr, range(0x300, 0x10000)) if category(c)[0] == 'M')}]"
# Letters and digits with their marks, and apostrophes inside: "didn't" is a word, "_so_" is "so".
_WORD = rf"[^\W_]+(?:(?:'|{_MARK}+)[^\W_]+)*{_MARK}*"
_WORDS = re.compile(_WORD)
_BLANK_LINE = re.compile(r"\n\s*\n")
_GAP = "\n\n"
_WORDS_AND_GAPS = re.compile(f"{_WORD}|{_GAP}")

END = -1  # separates passages: at blank lines, and at the end of a document

MOST_COUNTED = 5_000_000  # distinct words kept at a time; beyond this, the rarest so far are dropped
_BLOCK = 2**20  # numbers rewritten at a time


def split_words(text: str) -> list[str]:
    """The words of a text in lowercase, without what separates them."""
    return _WORDS.findall(_plain(text))


@dataclass(frozen=True, eq=False)
class WordCorpus:
    """A text as word numbers, 0 for the most frequent word; rare words are left out."""

    words: list[str]
    counts: NDArray[np.int64]  # occurrences of each word
    ids: NDArray[np.int32]  # the text, with END between passages

    @classmethod
    def read(cls, documents: Iterable[Document], min_count: int = 1) -> WordCorpus:
        """Read documents once, a piece at a time; the ids are stored in a file that is deleted with the corpus."""
        folder, tally = Path(tempfile.gettempdir()), _Tally()
        with (
            disk_errors(folder, "the words of the text are stored there during training"),
            tempfile.TemporaryFile(prefix="clearhead-") as file,  # stays available as a memory map
        ):
            for document in documents:
                for piece in document.pieces():
                    file.write(tally.number(piece).tobytes())
                file.write(np.array([0], np.int32).tobytes())
            file.flush()
            return _in_order(file, tally, min_count)


class _Tally:
    """Numbers words in order of appearance, and counts them. 0 separates passages."""

    def __init__(self) -> None:
        self.known: defaultdict[str, int] = defaultdict(count().__next__)
        self.counts = np.zeros(2**16, np.int64)
        self.given = self.known[_GAP] + 1  # numbers in use
        self._floor = 0

    def number(self, text: str) -> NDArray[np.int32]:
        found = _WORDS_AND_GAPS.findall(_BLANK_LINE.sub(_GAP, _plain(text)))
        ids = np.fromiter(map(self.known.__getitem__, found), np.int32, len(found))
        self.given = max(self.given, int(ids.max(initial=0)) + 1)
        if self.given > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(self.given, np.int64)])
        self.counts += np.bincount(ids, minlength=len(self.counts))
        while len(self.known) > MOST_COUNTED:
            self._forget()
        return ids

    def _forget(self) -> None:
        """Drop the rarest words, as word2vec does: a word that appears again gets a new number and count."""
        self._floor += 1
        rare = [word for word, i in self.known.items() if i and self.counts[i] <= self._floor]
        for word in rare:
            del self.known[word]


def _plain(text: str) -> str:
    return normalize("NFC", text.lower()).replace("’", "'")


def _in_order(file: IO[bytes], tally: _Tally, min_count: int) -> WordCorpus:
    """Renumber words by frequency in place, and leave out the rare ones."""
    known = [(word, i) for word, i in tally.known.items() if i and tally.counts[i] >= min_count]
    known.sort(key=lambda pair: (-tally.counts[pair[1]], pair[0]))
    if not known:
        raise UserError(
            f"no word occurs {min_count} times in the text: provide more text, or a lower `min_count`"
        )
    left_out = END - 1
    anew = np.full(tally.given, left_out, np.int32)
    anew[0] = END
    numbers = np.array([i for _, i in known])
    anew[numbers] = np.arange(len(known))
    ids = np.memmap(file, np.int32, "r+")
    length = 0
    for start in range(0, len(ids), _BLOCK):
        block = anew[ids[start : start + _BLOCK]]
        block = block[block != left_out]
        ids[length : length + len(block)] = block
        length += len(block)
    return WordCorpus([word for word, _ in known], tally.counts[numbers], ids[:length])


def passages(corpus: WordCorpus) -> Iterator[list[str]]:
    """The text as a list of words per passage."""
    held: list[str] = []
    for start in range(0, len(corpus.ids), _BLOCK):
        for i in corpus.ids[start : start + _BLOCK].tolist():
            if i != END:
                held.append(corpus.words[i])
            elif held:
                yield held
                held = []
