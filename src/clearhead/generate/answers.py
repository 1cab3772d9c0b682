"""A request answered at once: piece by piece, together with others, or by a search.

Requests that come one after another, from anywhere, are the engine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clearhead.generate.beams import Search
from clearhead.generate.capacity import SLOTS
from clearhead.generate.continuation import Reads, continuations
from clearhead.generate.readers import make_reader
from clearhead.generate.request import GenerationRequest, Handle
from clearhead.generate.sampler import make_drawers
from clearhead.generate.scheduler import Scheduler
from clearhead.generate.writing import Generated, Writer, write
from clearhead.networks import Network, need_causal
from clearhead.text.tokenizer import Tokenizer


def answer(
    network: Network,
    tokenizer: Tokenizer,
    request: GenerationRequest,
    reader: Reads | None = None,
    shift: bool = False,
) -> Iterator[list[Generated]]:
    """The next piece of every sample, until all are at their end.

    Read by the network's own reader, which may `shift`, or by another. What is wrong is said at once.
    """
    need_causal(network.config)
    ids, sampling = request.ids, request.sampling
    drawers = make_drawers(sampling, tokenizer, network.config.n_vocab, ids, request.seed, request.samples)
    if reader is None:
        reader = make_reader(network, request.samples, len(ids) + request.tokens, shift)
    writers = [Writer(tokenizer, request.stops, ids, exact=sampling.constrained) for _ in drawers]
    return write(continuations(reader, ids, drawers), writers, request.tokens, request.seconds)


def answer_together(
    network: Network, tokenizer: Tokenizer, requests: Sequence[GenerationRequest]
) -> list[list[Generated]]:
    """The texts of each of these requests, which are served as one batch."""
    if not requests:
        return []
    tickets = [Handle(request) for request in requests]
    service = Scheduler(network, tokenizer, min(SLOTS, sum(request.samples for request in requests)))
    for ticket in tickets:
        service.add(ticket)
    while service.busy:
        service.turn()
    return [ticket.texts() for ticket in tickets]


def answer_by_search(
    network: Network, tokenizer: Tokenizer, request: GenerationRequest, search: Search
) -> Generated:
    """The best text that is found. Of the request, the prompt and the limits count: nothing is drawn."""
    need_causal(network.config)
    reader = make_reader(network, search.beams, len(request.ids) + request.tokens)
    best = search.run(reader, request.ids, tokenizer.end_ids, request.tokens, request.seconds)[0]
    limit = "length" if len(best.drawn) == request.tokens else "time"
    text = Writer(tokenizer, prompt=request.ids).push_all(best.drawn, limit)
    return Generated(text, text.drawn, text.finish, best.score)
