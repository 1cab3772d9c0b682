"""Tokens to text, token by token: whole characters only, up to a stop string or an end token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self

from clearhead.generate.sampler import SampledToken
from clearhead.text.text_stream import TextStream
from clearhead.text.tokenizer import Tokenizer


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
        """The log-probability of each token, or None if they were not requested."""
        known = [token.log_probability for token in self.sampled if token.log_probability is not None]
        return known if len(known) == len(self.sampled) else None


class StopMatcher:
    """Passes text on up to the first stop string, and holds back what may be the start of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = [stop for stop in stops if stop]
        self.pending = ""
        self.stopped = False

    def push(self, text: str) -> str:
        self.pending += text
        starts = [self.pending.find(stop) for stop in self.stops if stop in self.pending]
        if starts:
            self.stopped = True
            return self.pending[: min(starts)]
        keep = max((_overlap(self.pending, stop) for stop in self.stops), default=0)
        cut = len(self.pending) - keep
        ready, self.pending = self.pending[:cut], self.pending[cut:]
        return ready


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
        self.stream = TextStream(tokenizer, continues=exact or any(map(tokenizer.has_text, prompt)))
        self.matcher = StopMatcher(stops)
        self.finish_reason: str | None = None

    def push(self, token: SampledToken, limit: str | None = None) -> Generated:
        """Return the text that this token completes, which may be empty.

        `limit` is the finish reason if no further token will come.
        """
        if self.finish_reason is not None:
            return Generated("")
        ends = token.id in self.end_ids
        text = "" if ends else self.matcher.push(self.stream.push(token.id))
        if self.matcher.stopped:
            self.finish_reason = "stop"
        elif ends or token.last:
            text += self.close("stop")
        elif limit is not None:
            text += self.close(limit)
        return Generated(text, [token], self.finish_reason)

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
