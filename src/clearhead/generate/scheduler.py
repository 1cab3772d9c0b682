"""The service: requests served as one running batch, whose texts come, grow by a word a turn, and go."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import cast

from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.generate.batch_decoder import ReadsOn, Rows
from clearhead.generate.capacity import SLOTS
from clearhead.generate.decoder import Decoder
from clearhead.generate.request import Event, Finish, GenerationRequest, Handle
from clearhead.generate.sampler import SampledToken, Sampler, make_grammar
from clearhead.generate.state_decoder import StateDecoder
from clearhead.generate.window_decoder import WindowDecoder
from clearhead.generate.writing import Writer
from clearhead.networks import Network
from clearhead.text.given import check_ids
from clearhead.text.tokenizer import Tokenizer

Draw = Callable[[Tensor], SampledToken]  # a row of logits to the next word


class Prompt:
    """A request whose prompt is not yet read, or not yet in a slot for every sample."""

    def __init__(self, ticket: Handle) -> None:
        self.ticket = ticket
        self.reading: ReadsOn | None = None
        self.placed = 0  # samples


class Text:
    """One sample: its words so far, of which the model has not read the last."""

    def __init__(self, ticket: Handle, number: int, slot: int, draw: Draw, tokenizer: Tokenizer) -> None:
        self.ticket, self.number, self.slot, self.draw = ticket, number, slot, draw
        request = ticket.request
        self.ids = list(request.ids)
        self.writer = Writer(tokenizer, request.stops, request.ids, exact=request.sampling.constrained)
        self.window: ReadsOn | None = None  # once the context is full

    def grow(self, logits: Tensor) -> Event:
        """Draw the next word."""
        request = self.ticket.request
        drawn = self.draw(logits)
        self.ids.append(drawn.id)
        limit = "length" if len(self.ids) - len(request.ids) >= request.tokens else None
        text = self.writer.push(drawn, limit)
        return Event(self.number, drawn, text, cast("Finish | None", text.finish))


class Scheduler:
    """Serves requests in the order of their coming, as many samples at once as there are slots."""

    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        slots: int = SLOTS,
        around: Callable[[GenerationRequest, int, Draw], Draw] = lambda _, __, draw: draw,
    ) -> None:
        """`around` may put something of its own in the place of how each sample of a request draws."""
        self.decoder = _make_decoder(network, slots)
        self.config, self.tokenizer, self.around = network.config, tokenizer, around
        self.prompts: deque[Prompt] = deque()
        self.texts: dict[int, Text] = {}  # by slot
        self.full: deque[Text] = deque()  # those of them whose context is full; they take turns

    def check(self, ticket: Handle) -> None:
        """Refuse what cannot be served; what the request is held to is made ready on the way."""
        request = ticket.request
        check_ids(request.ids, self.config.n_vocab)
        ticket.grammar = make_grammar(request.sampling, self.tokenizer, self.config.n_vocab)
        self._draw(ticket, 0)
        ticket.checked = True

    def _draw(self, ticket: Handle, number: int) -> Draw:
        request, n_vocab = ticket.request, self.config.n_vocab
        drawer = Sampler(
            request.sampling, self.tokenizer, n_vocab, request.ids, request.seed, number, ticket.grammar
        )
        return drawer.draw

    def add(self, ticket: Handle) -> None:
        if not ticket.checked:
            self.check(ticket)
        self.prompts.append(Prompt(ticket))

    @property
    def busy(self) -> bool:
        return bool(self.prompts or self.texts)

    @property
    def tickets(self) -> list[Handle]:
        """Of all requests that are not at their end."""
        waiting = [prompt.ticket for prompt in self.prompts]
        return list(dict.fromkeys(waiting + [text.ticket for text in self.texts.values()]))

    def turn(self) -> None:
        """Read a piece of what is to be read, and let every text grow by a word.

        Whatever goes wrong with a request ends that request.
        """
        self._dismiss()
        self._read_prompts()
        self._read_windows()
        self._step()

    def fail(self, ticket: Handle, error: Exception) -> None:
        self._leave(ticket)
        ticket.fail(error)

    def _leave(self, ticket: Handle) -> None:
        self.prompts = deque(prompt for prompt in self.prompts if prompt.ticket is not ticket)
        self.full = deque(text for text in self.full if text.ticket is not ticket)
        self.texts = {slot: text for slot, text in self.texts.items() if text.ticket is not ticket}

    def _dismiss(self) -> None:
        """End what was cancelled and what took too long, with the text that was held back."""
        for ticket in self.tickets:
            reason = ticket.dismissed()
            if reason is None:
                continue
            texts = [text for text in self.texts.values() if text.ticket is ticket]
            waiting = [prompt for prompt in self.prompts if prompt.ticket is ticket]
            self._leave(ticket)
            try:
                for text in texts:
                    ticket.send(Event(text.number, text=text.writer.close(reason), finish=reason))
                for prompt in waiting:
                    for number in range(prompt.placed, ticket.request.samples):
                        ticket.send(Event(number, finish=reason))
            except Exception as error:
                ticket.fail(error)

    def _read_prompts(self) -> None:
        """A piece of the first prompt, or several short prompts, while there is a slot for them."""
        budget = self.decoder.piece
        while budget > 0 and self.prompts and len(self.texts) < self.decoder.count:
            prompt = self.prompts[0]
            try:
                if prompt.reading is None:
                    prompt.reading = self.decoder.read(prompt.ticket.request.ids)
                budget -= prompt.reading.read_on()
                if prompt.reading.logits is not None:
                    self._place(prompt, prompt.reading, prompt.reading.logits)
            except Exception as error:
                self.fail(prompt.ticket, error)

    def _place(self, prompt: Prompt, reading: ReadsOn, logits: Tensor) -> None:
        """What was read goes into a slot for each sample, as far as there are slots."""
        ticket = prompt.ticket
        free = [slot for slot in range(self.decoder.count) if slot not in self.texts]
        numbers = range(prompt.placed, min(ticket.request.samples, prompt.placed + len(free)))
        for number, slot in zip(numbers, free, strict=False):
            draw = self.around(ticket.request, number, self._draw(ticket, number))
            text = Text(ticket, number, slot, draw, self.tokenizer)
            self.decoder.place(slot, reading)
            self.texts[slot] = text
            prompt.placed += 1
            self._grow(text, logits)
            if prompt not in self.prompts:  # it failed
                return
        if prompt.placed == ticket.request.samples:
            self.prompts.popleft()

    def _read_windows(self) -> None:
        """Where the context is full, the last words that fit are read again, text after text."""
        budget = self.decoder.piece
        while budget > 0 and self.full:
            text = self.full[0]
            try:
                if text.window is None:
                    text.window = self.decoder.read(text.ids[-self.config.n_context :])
                budget -= text.window.read_on()
            except Exception as error:
                self.fail(text.ticket, error)
                continue
            if text.window.logits is not None:
                logits, text.window = text.window.logits, None
                self.full.popleft()
                self._grow(text, logits)

    def _step(self) -> None:
        """One step for all texts that have room left in the context."""
        ready = [text for _, text in sorted(self.texts.items()) if len(text.ids) <= self.decoder.longest]
        for text in ready:
            try:
                self.decoder.extend(text.slot, len(text.ids) - 1)
            except Exception as error:
                self.fail(text.ticket, error)
        ready = [text for text in ready if self._is_here(text)]
        if not ready:
            return
        try:
            rows = self.decoder.step(
                [text.slot for text in ready],
                [text.ids[-1] for text in ready],
                [len(text.ids) - 1 for text in ready],
            )
        except Exception as error:
            for text in ready:
                self.fail(text.ticket, error)
            return
        for text, logits in zip(ready, rows, strict=True):
            if self._is_here(text):  # another sample may have ended its request
                self._grow(text, logits)

    def _grow(self, text: Text, logits: Tensor) -> None:
        try:
            event = text.grow(logits)
            if event.finish is not None:
                del self.texts[text.slot]
            elif len(text.ids) > self.decoder.longest:
                self.full.append(text)
            text.ticket.send(event)
        except Exception as error:
            self.fail(text.ticket, error)

    def _is_here(self, text: Text) -> bool:
        return self.texts.get(text.slot) is text


def _make_decoder(network: Network, slots: int) -> Rows:
    if isinstance(network, NGram):
        return WindowDecoder(network, slots)
    return StateDecoder(network, slots) if isinstance(network, Recurrent) else Decoder(network, slots)
