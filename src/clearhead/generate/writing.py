"""Ids into text as they come: whole characters only, up to a stop string or the end token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clearhead.text.tokenizer import TextStream, Tokenizer


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
    """One sample's text so far."""

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]) -> None:
        self.end_id = tokenizer.end_id
        self.stream = TextStream(tokenizer)
        self.stopper = Stopper(stops)
        self.done = False

    def push(self, token: int) -> str:
        """The text this token makes sure of, which may be none."""
        if token == self.end_id:
            return self.close()
        text = self.stopper.push(self.stream.push(token))
        self.done = self.stopper.stopped
        return text

    def close(self) -> str:
        """What was held back, when no more will come."""
        self.done = True
        text = self.stopper.push(self.stream.close())
        return text if self.stopper.stopped else text + self.stopper.held


def write(
    steps: Iterator[list[int]], tokenizer: Tokenizer, tokens: int, stops: Sequence[str] = (), samples: int = 1
) -> Iterator[list[str]]:
    """The next piece of text of every sample, until all have ended or `tokens` were drawn for each."""
    writers = [Writer(tokenizer, stops) for _ in range(samples)]
    for _ in range(tokens):
        ids = next(steps)
        yield ["" if each.done else each.push(token) for each, token in zip(writers, ids, strict=True)]
        if all(each.done for each in writers):
            return
    yield ["" if each.done else each.close() for each in writers]


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of the text begin the stop string."""
    return next((n for n in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:n])), 0)
