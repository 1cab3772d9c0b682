"""Tokens to text, token by token: whole characters only, up to a stop string or an end token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self
from weakref import WeakKeyDictionary

from clearhead.generate.sampler import SampledToken
from clearhead.text.text_stream import TextStream
from clearhead.text.tokenizer import Tokenizer

PIECES: WeakKeyDictionary[Tokenizer, dict[int, str]] = WeakKeyDictionary()  # of `CachedTextStream`


class Generated(str):
    """A generated text, or a piece of one: a `str` with the tokens it was decoded from.

    `sampled` holds its tokens, including an end token; a stop string may have cut off the text of the last
    ones. `finish_reason` is "stop" (an end token, a stop string, or a complete match of a constraint),
    "length" (the limit on tokens), "time" (the limit on seconds), or None if more text follows. `score` is
    set by beam search.
    """

    sampled: tuple[SampledToken, ...]
    finish_reason: str | None
    score: float | None

    def __new__(
        cls,
        text: str,
        sampled: Sequence[SampledToken] = (),
        finish_reason: str | None = None,
        score: float | None = None,
    ) -> Self:
        generated = super().__new__(cls, text)
        generated.sampled, generated.finish_reason, generated.score = tuple(sampled), finish_reason, score
        return generated

    @classmethod
    def concatenate(cls, pieces: Sequence[Generated]) -> Self:
        """Join the pieces of a stream into one text."""
        sampled = [token for piece in pieces for token in piece.sampled]
        reason = next((piece.finish_reason for piece in reversed(pieces) if piece.finish_reason), None)
        return cls("".join(pieces), sampled, reason)

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.sampled]

    @property
    def log_probabilities(self) -> list[float] | None:
        """The log-probabilities of the tokens, or None if they were not requested."""
        known = [token.log_probability for token in self.sampled if token.log_probability is not None]
        return known if len(known) == len(self.sampled) else None


class StopMatcher:
    """Passes text on up to the first stop string, and holds back what may be the start of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = [stop for stop in stops if stop]
        self.pending = ""
        self.stopped = False

    def push(self, text: str) -> str:
        if not self.stops:
            return text
        self.pending += text
        starts = [self.pending.find(stop) for stop in self.stops if stop in self.pending]
        if starts:
            self.stopped = True
            return self.pending[: min(starts)]
        keep = max((_overlap(self.pending, stop) for stop in self.stops), default=0)
        cut = len(self.pending) - keep
        ready, self.pending = self.pending[:cut], self.pending[cut:]
        return ready


class CachedTextStream(TextStream):
    """A `TextStream` that decodes a token only once if it follows whole characters and its own text is whole."""

    def __init__(self, tokenizer: Tokenizer, continues: bool = False) -> None:
        self._pieces = PIECES.setdefault(tokenizer, {})  # by id
        self._whole = False  # whether the text so far has been returned, and there is some
        super().__init__(tokenizer, continues)

    def push(self, i: int) -> str:
        whole = self._whole
        if whole and (known := self._pieces.get(i)) is not None:
            return known
        if not self._tokenizer.has_text(i):
            self._pieces[i] = ""
            return ""
        self._whole = False
        piece = super().push(i)
        if whole and self._whole:
            self._pieces[i] = piece
        return piece

    def close(self) -> str:
        self._whole = False
        return super().close()

    def _go_on(self) -> None:
        super()._go_on()
        self._whole = True


class Detokenizer:
    """Turns the tokens of one sample into text.

    Some tokenizers prepend a space to every text and remove it again when decoding. After a prompt with
    text, or if a constraint requires it (`exact`), a leading space is part of the generated text.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        stops: Sequence[str] = (),
        prompt: Sequence[int] = (),
        exact: bool = False,
    ) -> None:
        self.end_ids = tokenizer.end_ids
        self.stream = CachedTextStream(tokenizer, continues=exact or any(map(tokenizer.has_text, prompt)))
        self.matcher = StopMatcher(stops)
        self.finish_reason: str | None = None

    def push(self, token: SampledToken, limit: str | None = None) -> Generated:
        """Return the text that this token completes, which may be empty.

        `limit` is the finish reason if no further token will come.
        """
        if self.finish_reason is not None:
            return Generated("")
        return Generated(self.decode(token, limit), [token], self.finish_reason)

    def decode(self, token: SampledToken, limit: str | None = None) -> str:
        """Return the same as a plain string, for a text that has not finished."""
        ends = token.id in self.end_ids
        text = "" if ends else self.matcher.push(self.stream.push(token.id))
        if self.matcher.stopped:
            self.finish_reason = "stop"
        elif ends or token.last:
            text += self.close("stop")
        elif limit is not None:
            text += self.close(limit)
        return text

    def close(self, finish_reason: str) -> Generated:
        """Return the text held back, and finish for this reason unless a stop string is found in it."""
        text = self.matcher.push(self.stream.close())
        stopped = self.matcher.stopped
        self.finish_reason = "stop" if stopped else finish_reason
        return Generated(text if stopped else text + self.matcher.pending, (), self.finish_reason)

    def push_all(self, tokens: Sequence[SampledToken], limit: str) -> Generated:
        """Return the text of all these tokens.

        The finish reason is `limit` unless something else ended the text first.
        """
        pieces = [self.push(token) for token in tokens[:-1]]
        return Generated.concatenate([*pieces, self.push(tokens[-1], limit)])


def merge_empty(pieces: Iterator[Generated]) -> Iterator[Generated]:
    """Merge pieces without text into the next piece that has text or is the last."""
    pending: list[Generated] = []
    for piece in pieces:
        pending.append(piece)
        if piece or piece.finish_reason:
            yield Generated.concatenate(pending)
            pending = []


def _overlap(text: str, stop: str) -> int:
    """Return how many characters at the end of the text start the stop string."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
