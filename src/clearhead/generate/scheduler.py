"""Continuous batching: requests join and leave one running batch; each step generates one token per sequence."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import cast

from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.generate.batch_decoder import BatchDecoder, ChunkedPrefill, TransformerBatchDecoder
from clearhead.generate.classic_decoders import NGramBatchDecoder, RecurrentBatchDecoder
from clearhead.generate.cuda_batch_decoder import make_cuda_batch_decoder
from clearhead.generate.detokenizer import Detokenizer
from clearhead.generate.ensemble_decoders import EnsembleBatchDecoder
from clearhead.generate.request import Event, FinishReason, GenerationRequest, Handle
from clearhead.generate.sampler import SampledToken, Sampler, make_grammar
from clearhead.generate.sampling import SLOTS
from clearhead.generate.scoring import ScoredText, check_scorable
from clearhead.generate.scoring_queue import ScoringQueue
from clearhead.model.transformer import Transformer
from clearhead.networks import Ensemble, Network
from clearhead.text.inputs import check_ids
from clearhead.text.tokenizer import Tokenizer

# The size of a chunk of prompts to score while no text is being generated, in prefill chunks.
IDLE_CHUNKS = 8
Sample = Callable[[Tensor], SampledToken]  # from one row of logits, V, to the next token


class WaitingRequest:
    """A request whose prompt has not been prefilled yet, or whose samples do not all have a slot."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.prefill: ChunkedPrefill | None = None
        self.n_started = 0  # samples that have a slot
        self.together = False  # whether the prompt was prefilled with others, which gives no logits
        self.alone = False  # whether the prompt must be prefilled on its own

    @property
    def length(self) -> int:
        return len(self.handle.request.ids)


class Sequence:
    """One sample in a slot, with its tokens so far; the decoder has not processed the last one yet."""

    def __init__(
        self,
        handle: Handle,
        number: int,
        slot: int,
        sample: Sample,
        tokenizer: Tokenizer,
        sampler: Sampler | None = None,
    ) -> None:
        """`sampler` is given if `sample` is its own method; the decoder may then sample in its place."""
        self.sampler = sampler
        self.handle, self.number, self.slot, self.sample = handle, number, slot, sample
        request = handle.request
        self.ids = list(request.ids)
        self.detokenizer = Detokenizer(tokenizer, request.stop, request.ids, exact=request.constrained)
        self.prefill: ChunkedPrefill | None = None  # of its last tokens, once the context is full

    def append(self, logits: Tensor | int) -> Event:
        """Sample the next token, unless the decoder has already sampled it."""
        request = self.handle.request
        if isinstance(logits, int):
            assert self.sampler is not None, "the decoder sampled a token without the request's sampler"
            token = self.sampler.accept(logits)
        else:
            token = self.sample(logits)
        self.ids.append(token.id)
        limit = "length" if len(self.ids) - len(request.ids) >= request.tokens else None
        text = self.detokenizer.decode(token, limit)
        return Event(self.number, token, text, cast("FinishReason | None", self.detokenizer.finish_reason))


class Scheduler:
    """Serves requests in order of arrival, with as many samples at once as there are slots."""

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        slots: int = SLOTS,
        wrap_sampler: Callable[[GenerationRequest, int, Sample], Sample] = lambda _, __, sample: sample,
    ) -> None:
        """`wrap_sampler` can replace the function that chooses the tokens of one sample of a request."""
        self.decoder = make_batch_decoder(network, slots)
        self.config, self.tokenizer, self.wrap_sampler = network.config, tokenizer, wrap_sampler
        self.scoring = ScoringQueue(network)
        self.waiting: deque[WaitingRequest] = deque()
        self.running: dict[int, Sequence] = {}  # by slot
        self.overflowing: deque[Sequence] = deque()  # running, with a full context; they take turns

    def validate(self, handle: Handle) -> None:
        """Prepare the request's grammar; raise an error if the request cannot be served."""
        request = handle.request
        check_ids(request.ids, self.config.n_vocab)
        if request.score_prompt:
            check_scorable(self.config, len(request.ids), with_next=True)
        handle.grammar = make_grammar(
            request.sampling, self.tokenizer, self.config.n_vocab, request.tool_grammar
        )
        self._make_sampler(handle, 0)
        handle.validated = True

    def _make_sampler(self, handle: Handle, number: int) -> Sampler:
        request, n_vocab = handle.request, self.config.n_vocab
        return Sampler(
            request.sampling, self.tokenizer, n_vocab, request.ids, request.seed, number, handle.grammar
        )

    def add(self, handle: Handle) -> None:
        if not handle.validated:
            self.validate(handle)
        if handle.request.score_prompt:
            self.scoring.add(handle)
        else:
            self.waiting.append(WaitingRequest(handle))

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running or self.scoring.handles)

    @property
    def handles(self) -> list[Handle]:
        """The handles of all unfinished requests."""
        waiting = [request.handle for request in self.waiting]
        running = [sequence.handle for sequence in self.running.values()]
        return list(dict.fromkeys([*self.scoring.handles, *waiting, *running]))

    def step(self) -> None:
        """Score and prefill a chunk of the waiting prompts, and extend each running sequence by a token.

        An exception finishes the request that raised it, and no other.
        """
        self._finish_stopped()
        self._score_prompts()
        self._prefill_waiting()
        self._prefill_overflowing()
        self._decode()

    def fail(self, handle: Handle, error: Exception) -> None:
        self._remove(handle)
        handle.fail(error)

    def _remove(self, handle: Handle) -> None:
        self.scoring.remove(handle)
        self.waiting = deque(request for request in self.waiting if request.handle is not handle)
        self.overflowing = deque(sequence for sequence in self.overflowing if sequence.handle is not handle)
        self.running = {
            slot: sequence for slot, sequence in self.running.items() if sequence.handle is not handle
        }

    def _finish_stopped(self) -> None:
        """Finish the requests that were canceled or ran out of time, and emit the text held back."""
        for handle in self.handles:
            reason = handle.stop_reason()
            if reason is None:
                continue
            running = [sequence for sequence in self.running.values() if sequence.handle is handle]
            started = [request.n_started for request in self.waiting if request.handle is handle]
            if any(each is handle for each in self.scoring.handles):
                started.append(0)
            self._remove(handle)
            try:
                for sequence in running:
                    text = sequence.detokenizer.close(reason)
                    handle.emit(Event(sequence.number, text=text, finish_reason=reason))
                for n_started in started:
                    for number in range(n_started, handle.request.samples):
                        handle.emit(Event(number, finish_reason=reason))
            except Exception as error:
                handle.fail(error)

    def _score_prompts(self) -> None:
        """Score a chunk of prompts: a small one while texts are being generated, as their next tokens wait for it."""
        busy = self.waiting or self.running
        try:
            scored = self.scoring.run_chunk(self.decoder.chunk_size * (1 if busy else IDLE_CHUNKS))
        except Exception as error:
            for handle in list(self.scoring.running):
                self.fail(handle, error)
            return
        for handle, text, logits in scored:
            if not handle.done:
                self._continue_scored(handle, text, logits)

    def _continue_scored(self, handle: Handle, text: ScoredText, logits: Tensor) -> None:
        """Report a scored prompt, and generate what follows it. A single token needs no slot."""
        request = handle.request
        reason: FinishReason | None = None if request.tokens else "length"
        try:
            for number in range(request.samples):
                handle.emit(Event(number, prompt=text, finish_reason=reason))
                if request.tokens == 1:
                    sample = self.wrap_sampler(request, number, self._make_sampler(handle, number).sample)
                    handle.emit(Sequence(handle, number, 0, sample, self.tokenizer).append(logits))
        except Exception as error:
            self.fail(handle, error)
        if request.tokens > 1 and not handle.done:
            self.waiting.append(WaitingRequest(handle))

    def _prefill_waiting(self) -> None:
        """Prefill a chunk of the first waiting prompt, or several short prompts, while slots are free."""
        budget = self.decoder.chunk_size
        while self.waiting and len(self.running) < self.decoder.n_slot:
            request = self.waiting[0]
            if budget > 0 and request.prefill is None:
                budget -= self._prefill_together()
            if budget <= 0 and not request.together:
                return
            try:
                if request.prefill is None:
                    request.prefill = self.decoder.prefill(request.handle.request.ids)
                budget -= request.prefill.run_chunk()
                if request.together or request.prefill.logits is not None:
                    self._start(request, request.prefill, request.prefill.logits)
            except Exception as error:
                self.fail(request.handle, error)

    def _prefill_together(self) -> int:
        """Prefill as many of the first waiting prompts as the decoder can at once; return the number of tokens."""
        requests = self._choose_together()
        if not requests:
            return 0
        try:
            prefills = self.decoder.prefill_together([request.handle.request.ids for request in requests])
        except Exception:  # try each prompt on its own, so that an error ends only its own request
            for request in requests:
                request.alone = True
            return 0
        for request, prefill in zip(requests, prefills, strict=True):
            request.prefill, request.together = prefill, True
        return len(requests) * max(request.length for request in requests)

    def _choose_together(self) -> list[WaitingRequest]:
        """The first waiting requests with short prompts, as many as get a slot."""
        chosen: list[WaitingRequest] = []
        free, longest = self.decoder.n_slot - len(self.running), 0
        for request in self.waiting:
            longest = max(longest, request.length)
            fits = longest <= min(self.decoder.chunk_size, self.decoder.max_length)
            fits = fits and (len(chosen) + 1) * longest <= self.decoder.most_together
            if free <= 0 or not fits or request.alone or request.prefill is not None:
                break
            chosen.append(request)
            free -= request.handle.request.samples
        return chosen

    def _start(self, waiting: WaitingRequest, prefill: ChunkedPrefill, logits: Tensor | None) -> None:
        """Give each sample of a prefilled request a slot, as long as slots are free.

        Without logits, the next step processes the last token of the prompt.
        """
        handle = waiting.handle
        free = [slot for slot in range(self.decoder.n_slot) if slot not in self.running]
        numbers = range(waiting.n_started, min(handle.request.samples, waiting.n_started + len(free)))
        for number, slot in zip(numbers, free, strict=False):
            sampler = self._make_sampler(handle, number)
            sample = self.wrap_sampler(handle.request, number, sampler.sample)
            own = sampler if sample == sampler.sample else None
            sequence = Sequence(handle, number, slot, sample, self.tokenizer, own)
            self.decoder.insert(slot, prefill)
            self.running[slot] = sequence
            waiting.n_started += 1
            if logits is not None:
                self._append(sequence, logits)
            if waiting not in self.waiting:  # the request has failed
                return
        if waiting.n_started == handle.request.samples:
            self.waiting.popleft()

    def _prefill_overflowing(self) -> None:
        """Recompute the last tokens of sequences whose context is full, one sequence after another."""
        budget = self.decoder.chunk_size
        while budget > 0 and self.overflowing:
            sequence = self.overflowing[0]
            try:
                if sequence.prefill is None:
                    sequence.prefill = self.decoder.prefill(sequence.ids[-self.config.n_context :])
                budget -= sequence.prefill.run_chunk()
            except Exception as error:
                self.fail(sequence.handle, error)
                continue
            if sequence.prefill.logits is not None:
                logits, sequence.prefill = sequence.prefill.logits, None
                self.overflowing.popleft()
                self._append(sequence, logits)

    def _decode(self) -> None:
        """Run one decoding step for all sequences with room left in the context."""
        in_slots = [self.running[slot] for slot in sorted(self.running)]
        ready = [sequence for sequence in in_slots if len(sequence.ids) <= self.decoder.max_length]
        n_running = len(self.running)
        for sequence in ready:
            try:
                self.decoder.extend(sequence.slot, len(sequence.ids) - 1)
            except Exception as error:
                self.fail(sequence.handle, error)
        if len(self.running) < n_running:
            ready = [sequence for sequence in ready if self._is_running(sequence)]
        if not ready:
            return
        try:
            rows = self.decoder.decode(
                [sequence.slot for sequence in ready],
                [sequence.ids[-1] for sequence in ready],
                [len(sequence.ids) - 1 for sequence in ready],
                [sequence.sampler for sequence in ready],
            )
        except Exception as error:
            for sequence in ready:
                self.fail(sequence.handle, error)
            return
        for sequence, logits in zip(ready, rows, strict=True):
            if self._is_running(sequence):  # its request may have failed in another sample
                self._append(sequence, logits)

    def _append(self, sequence: Sequence, logits: Tensor | int) -> None:
        try:
            event = sequence.append(logits)
            if event.finish_reason is not None:
                del self.running[sequence.slot]
            elif len(sequence.ids) > self.decoder.max_length:
                self.overflowing.append(sequence)
            sequence.handle.emit(event)
        except Exception as error:
            self.fail(sequence.handle, error)

    def _is_running(self, sequence: Sequence) -> bool:
        return self.running.get(sequence.slot) is sequence


def make_batch_decoder(network: Network, slots: int) -> BatchDecoder:
    if isinstance(network, Transformer):
        cuda_batch_decoder = make_cuda_batch_decoder(network, slots)
        if cuda_batch_decoder is not None:
            return cuda_batch_decoder
    return _make_plain_decoder(network, slots)


def _make_plain_decoder(network: Network, slots: int) -> BatchDecoder:
    if isinstance(network, NGram):
        return NGramBatchDecoder(network, slots)
    if isinstance(network, Recurrent):
        return RecurrentBatchDecoder(network, slots)
    if isinstance(network, Ensemble):
        members = [_make_plain_decoder(each, slots) for each in network.members]
        return EnsembleBatchDecoder(network, members)
    return TransformerBatchDecoder(network, slots)
