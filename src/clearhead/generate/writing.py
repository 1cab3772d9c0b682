"""Words into text as they come: whole characters only, up to a stop string or the end token."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from clearhead.errors import UserError
from clearhead.generate.sampler import SampledToken
from clearhead.generate.sampling import is_number, is_whole
from clearhead.text.text_stream import TextStream
from clearhead.text.tokenizer import Tokenizer

MOST_SAMPLES = 10_000


class Generated(str):
    """A text that was written, or a piece of one: a str that knows how it came about.

    `drawn` are the words drawn for it, one that ended it too; a stop string may have cut off the text of the
    last ones. `finish` is why it ended: "stop" (an end token, a stop string, or all is there that a grammar
    asks for), "length" (as many tokens as were asked for) or "time"; None of a piece after which more comes.
    `score` is what beam search ranked it by.
    """

    drawn: tuple[SampledToken, ...]
    finish: str | None
    score: float | None

    def __new__(
        cls,
        text: str,
        drawn: Sequence[SampledToken] = (),
        finish: str | None = None,
        score: float | None = None,
    ) -> Self:
        made = super().__new__(cls, text)
        made.drawn, made.finish, made.score = tuple(drawn), finish, score
        return made

    @classmethod
    def joined(cls, pieces: Sequence[Generated]) -> Self:
        """One text from its pieces."""
        drawn = [drawn for piece in pieces for drawn in piece.drawn]
        finish = next((piece.finish for piece in reversed(pieces) if piece.finish), None)
        return cls("".join(pieces), drawn, finish)

    @property
    def ids(self) -> list[int]:
        return [drawn.id for drawn in self.drawn]

    @property
    def log_probabilities(self) -> list[float] | None:
        """Of each id, where it was asked for."""
        told = [drawn.log_probability for drawn in self.drawn if drawn.log_probability is not None]
        return told if len(told) == len(self.drawn) else None


class Stopper:
    """Lets text through up to the first stop string, holding back what may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = [stop for stop in stops if stop]
        self.held = ""
        self.stopped = False

    def push(self, text: str) -> str:
        self.held += text
        starts = [self.held.find(stop) for stop in self.stops if stop in self.held]
        if starts:
            self.stopped = True
            return self.held[: min(starts)]
        keep = max((_overlap(self.held, stop) for stop in self.stops), default=0)
        ready, self.held = self.held[: len(self.held) - keep], self.held[len(self.held) - keep :]
        return ready


class Writer:
    """One sample's text so far.

    Some tokenizers put a space before every text and take it away again. So it matters what goes before:
    after a prompt a space is a space, as it is where a grammar has asked for it (`exact`).
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
        self.stopper = Stopper(stops)
        self.finish: str | None = None

    def push(self, drawn: SampledToken, limit: str | None = None) -> Generated:
        """The text this word makes sure of, which may be none. Where a limit is reached, it is the last."""
        if self.finish is not None:
            return Generated("")
        ends = drawn.id in self.end_ids
        text = "" if ends else self.stopper.push(self.stream.push(drawn.id))
        if self.stopper.stopped:
            self.finish = "stop"
        elif ends or drawn.last:
            text += self.close("stop")
        elif limit is not None:
            text += self.close(limit)
        return Generated(text, [drawn], self.finish)

    def close(self, finish: str) -> Generated:
        """What was held back, when no more will come, and why not."""
        text = self.stopper.push(self.stream.close())
        self.finish = "stop" if self.stopper.stopped else finish
        return Generated(text if self.stopper.stopped else text + self.stopper.held, (), self.finish)

    def push_all(self, drawn: Sequence[SampledToken], limit: str) -> Generated:
        """The whole text of these words; where nothing else ends it, the limit does."""
        pieces = [self.push(each) for each in drawn[:-1]]
        return Generated.joined([*pieces, self.push(drawn[-1], limit)])


def write(
    steps: Iterator[list[SampledToken]], writers: Sequence[Writer], tokens: int, seconds: float | None = None
) -> Iterator[list[Generated]]:
    """The next piece of every sample, until all have ended, `tokens` were drawn for each, or time is up.

    The time runs from the first piece that is asked for; one word is always drawn.
    """
    end = time.monotonic() + (math.inf if seconds is None else seconds)
    for n in range(1, tokens + 1):
        drawn = next(steps)
        limit = "length" if n == tokens else "time" if time.monotonic() >= end else None
        yield [writer.push(each, limit) for writer, each in zip(writers, drawn, strict=True)]
        if all(writer.finish for writer in writers):
            return


def with_text(pieces: Iterator[Generated]) -> Iterator[Generated]:
    """The same pieces, those without text together with the next that has some, or is the last."""
    held: list[Generated] = []
    for piece in pieces:
        held.append(piece)
        if piece or piece.finish:
            yield Generated.joined(held)
            held = []


def check_limits(tokens: int, seconds: float | None, samples: int = 1) -> None:
    if not is_whole(tokens) or tokens < 1:
        raise UserError(f"tokens = {tokens!r}: expected a whole number, at least 1")
    if seconds is not None and not (is_number(seconds) and 0 < seconds < math.inf):
        raise UserError(f"seconds = {seconds!r}: expected a finite number, more than 0")
    if not is_whole(samples) or not 1 <= samples <= MOST_SAMPLES:
        raise UserError(f"samples = {samples!r}: expected 1 to {MOST_SAMPLES}")


def read_stops(stop: str | Iterable[str] | None) -> tuple[str, ...]:
    """What may be one stop string, several, or none, as several."""
    if stop is None:
        return ()
    stops = tuple(stop) if isinstance(stop, Iterable) and not isinstance(stop, str) else (stop,)
    if not all(isinstance(each, str) and each for each in stops):
        raise UserError(f"stop = {stop!r}: expected a text, or several, none of them empty")
    return stops


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of the text begin the stop string."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
