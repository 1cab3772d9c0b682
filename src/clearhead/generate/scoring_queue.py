"""The prompts of an engine's requests that are to be scored, in batches across requests."""

from __future__ import annotations

from collections import deque

from torch import Tensor

from clearhead.generate.request import Handle
from clearhead.generate.scoring import ScoredText, ScoringBatch, fits
from clearhead.networks import Network

MOST_ROWS = 128  # so that a chunk of one column is short
Scored = tuple[Handle, ScoredText, Tensor]  # with the logits of the token that follows


class ScoringQueue:
    """Forms batches in order of arrival; `run_chunk` processes a part of the current one."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.waiting: deque[Handle] = deque()
        self.running: list[Handle] = []  # one per row of the current batch
        self._batch: ScoringBatch | None = None

    @property
    def handles(self) -> list[Handle]:
        """The handles of all unfinished requests."""
        return [handle for handle in (*self.running, *self.waiting) if not handle.done]

    def add(self, handle: Handle) -> None:
        self.waiting.append(handle)

    def remove(self, handle: Handle) -> None:
        """Forget a request; a batch without any other request is dropped."""
        self.waiting = deque(each for each in self.waiting if each is not handle)
        if all(each is handle or each.done for each in self.running):
            self.running, self._batch = [], None

    def run_chunk(self, most: int) -> list[Scored]:
        """Process up to `most` tokens, and return the requests whose prompts are now scored."""
        if self._batch is None:
            if not self.waiting:
                return []
            self._batch = self._start()
        self._batch.run_chunk(most)
        if not self._batch.done:
            return []
        texts, logits = self._batch.texts(), self._batch.next_logits
        handles, self.running, self._batch = self.running, [], None
        scored = zip(handles, texts, logits, strict=True)
        return [(handle, text, row) for handle, text, row in scored if row is not None]

    def _start(self) -> ScoringBatch:
        """Begin a batch with the next prompts that request the same number of alternatives."""
        top = self.waiting[0].request.sampling.log_probabilities
        lengths: list[int] = []
        while self.waiting and len(lengths) < MOST_ROWS:
            request = self.waiting[0].request
            lengths.append(len(request.ids))
            padded = len(lengths) * max(lengths)
            if not fits(lengths, self.network.config.n_vocab) or padded > 2 * sum(lengths):
                break
            if request.sampling.log_probabilities != top:
                break
            self.running.append(self.waiting.popleft())
        sequences = [handle.request.ids for handle in self.running]
        return ScoringBatch(self.network, sequences, top=top, with_next=True)
