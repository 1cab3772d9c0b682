"""Generation in the calling thread: one request as a stream, several as one batch, or by beam search.

For requests that arrive at any time and from any thread, use the `Engine`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import torch

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.errors import UserError
from clearhead.generate import cuda_decoder
from clearhead.generate.beam_search import BeamSearch
from clearhead.generate.classic_decoders import NGramDecoder, RecurrentDecoder
from clearhead.generate.decoder import Decoder, ReorderableDecoder, ShiftingDecoder, TransformerDecoder
from clearhead.generate.detokenizer import Detokenizer, Generated
from clearhead.generate.drafting import generate_drafted_tokens, make_drafter
from clearhead.generate.ensemble_decoders import EnsembleDecoder
from clearhead.generate.quantized_decoder import QuantizedDecoder, supports
from clearhead.generate.request import GenerationRequest, Handle
from clearhead.generate.sampler import SampledToken, Sampler, make_samplers
from clearhead.generate.sampling import SLOTS
from clearhead.generate.scheduler import Scheduler
from clearhead.model.transformer import Transformer
from clearhead.networks import Ensemble, Network, need_causal
from clearhead.text.tokenizer import Tokenizer


def make_decoder(
    network: Network, samples: int = 1, max_length: int | None = None, shift: bool = False
) -> ReorderableDecoder:
    """Return the fastest exact decoder for a network; with `shift`, the one that drops old tokens."""
    if shift and not isinstance(network, Transformer):
        kind = network.config.kind
        raise UserError(
            f"`shift` requires a model with a limited context; this model is of kind {kind}: omit `shift`"
        )
    if isinstance(network, Recurrent):
        return RecurrentDecoder(network, samples)
    if isinstance(network, NGram):
        return NGramDecoder(network, samples)
    if isinstance(network, Ensemble):
        members = [make_decoder(each, samples, max_length) for each in network.members]
        return EnsembleDecoder(network, members, samples)
    if shift:
        return ShiftingDecoder(network, samples, max_length)
    if samples == 1 and supports(network):
        return QuantizedDecoder(network, max_length)
    return TransformerDecoder(network, samples, max_length)


def generate_tokens(
    decoder: Decoder, prompt: Sequence[int], samplers: Sequence[Sampler]
) -> Iterator[list[SampledToken]]:
    """Yield the next token of every sample, indefinitely: prefill, then sample and decode in turn."""
    yield from continue_tokens(decoder, [prompt] * len(samplers), samplers)


def continue_tokens(
    decoder: Decoder, ids: Sequence[Sequence[int]], samplers: Sequence[Sampler]
) -> Iterator[list[SampledToken]]:
    """`generate_tokens` for samples that have already diverged, each with its own tokens so far."""
    logits = decoder.prefill(torch.tensor([list(each) for each in ids]))
    while True:
        tokens = [sampler.sample(row) for sampler, row in zip(samplers, logits, strict=True)]
        yield tokens
        logits = decoder.decode_one(torch.tensor([[token.id] for token in tokens]))


def generate_on_cuda(
    network: Transformer, request: GenerationRequest, samplers: Sequence[Sampler]
) -> Iterator[list[SampledToken]]:
    """Like `generate_tokens`, but uses CUDA graphs until the context is full.

    If the device cannot run them, none are used.
    """
    ids = [list(request.ids) for _ in samplers]
    tokens_left = min(request.tokens, network.config.n_context - len(request.ids))
    for tokens in cuda_decoder.generate_tokens(network, request.ids, request.sampling, samplers, tokens_left):
        for each, token in zip(ids, tokens, strict=True):
            each.append(token.id)
        yield tokens
    decoder = make_decoder(network, len(samplers), len(request.ids) + request.tokens)
    yield from continue_tokens(decoder, ids, samplers)


def generate_text(
    steps: Iterator[list[SampledToken]],
    detokenizers: Sequence[Detokenizer],
    tokens: int,
    seconds: float | None = None,
) -> Iterator[list[Generated]]:
    """Yield the next piece of every sample until all have finished, with at most `tokens` tokens each.

    The `seconds` limit starts when the first piece is requested; at least one token is always sampled.
    """
    end = time.monotonic() + (math.inf if seconds is None else seconds)
    for n in range(1, tokens + 1):
        sampled = next(steps)
        limit = "length" if n == tokens else "time" if time.monotonic() >= end else None
        yield [
            detokenizer.push(token, limit) for detokenizer, token in zip(detokenizers, sampled, strict=True)
        ]
        if all(detokenizer.finish_reason for detokenizer in detokenizers):
            return


def run_request(
    network: Network,
    tokenizer: Tokenizer,
    request: GenerationRequest,
    decoder: Decoder | None = None,
    shift: bool = False,
    draft: object = None,
) -> Iterator[list[Generated]]:
    """Yield the next piece of every sample of a request, with the given decoder or the network's own.

    Invalid settings raise an error at once, before the first piece is requested.
    """
    need_causal(network.config)
    ids, sampling = request.ids, request.sampling
    samplers = make_samplers(sampling, tokenizer, network.config.n_vocab, ids, request.seed, request.samples)
    plain = decoder is None and draft is None and not shift
    if plain and cuda_decoder.can_generate(network, sampling, len(ids), request.tokens, request.samples):
        assert isinstance(network, Transformer)
        steps = generate_on_cuda(network, request, samplers)
        return generate_text(steps, _make_detokenizers(tokenizer, request), request.tokens, request.seconds)
    if decoder is None:
        decoder = make_decoder(network, request.samples, len(ids) + request.tokens, shift)
    if draft is None:
        steps = generate_tokens(decoder, ids, samplers)
    else:
        if not isinstance(network, Transformer):
            raise UserError(f"`draft` requires a transformer, not a model of kind {network.config.kind}")
        if shift:
            raise UserError("`draft` and `shift` cannot be combined: omit one of them")
        assert isinstance(decoder, TransformerDecoder)
        if request.samples > 1:
            raise UserError("`draft` applies to a single sample: omit `samples`")
        drafter = make_drafter(draft, tokenizer, network.config.n_vocab)
        steps = generate_drafted_tokens(decoder, ids, samplers[0], drafter)
    return generate_text(steps, _make_detokenizers(tokenizer, request), request.tokens, request.seconds)


def _make_detokenizers(tokenizer: Tokenizer, request: GenerationRequest) -> list[Detokenizer]:
    exact = request.sampling.constrained
    return [Detokenizer(tokenizer, request.stop, request.ids, exact=exact) for _ in range(request.samples)]


def run_batch(
    network: Network, tokenizer: Tokenizer, requests: Sequence[GenerationRequest]
) -> list[list[Generated]]:
    """Return the texts of each request, generated as one batch."""
    if not requests:
        return []
    handles = [Handle(request) for request in requests]
    scheduler = Scheduler(network, tokenizer, min(SLOTS, sum(request.samples for request in requests)))
    for handle in handles:
        scheduler.add(handle)
    while scheduler.has_work:
        scheduler.step()
    return [handle.texts() for handle in handles]


def run_beam_search(
    network: Network, tokenizer: Tokenizer, request: GenerationRequest, search: BeamSearch
) -> Generated:
    """Return the best text found. Uses only the prompt, `tokens` and `seconds` of the request."""
    need_causal(network.config)
    decoder = make_decoder(network, search.beams, len(request.ids) + request.tokens)
    best = search.run(decoder, request.ids, tokenizer.end_ids, request.tokens, request.seconds)[0]
    limit = "length" if len(best.tokens) == request.tokens else "time"
    text = Detokenizer(tokenizer, prompt=request.ids).push_all(best.tokens, limit)
    return Generated(text, text.sampled, text.finish_reason, best.score)
