"""The reader that goes with a network."""

from __future__ import annotations

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.errors import UserError
from clearhead.generate.continuation import Reader, Reorders, StateReader, WindowReader
from clearhead.generate.quantized_decoder import QuantizedReader, reads_by_word
from clearhead.generate.shifting import ShiftingReader
from clearhead.networks import Network


def make_reader(
    network: Network, samples: int = 1, longest: int | None = None, shift: bool = False
) -> Reorders:
    """For so many samples of at most `longest` words; `shift` drops words once a context is full."""
    if isinstance(network, Recurrent | NGram):
        if shift:
            kind = network.config.kind
            raise UserError(
                f"shift is for full contexts, which a network of kind {kind} never has: leave it out"
            )
        return (
            StateReader(network, samples)
            if isinstance(network, Recurrent)
            else WindowReader(network, samples)
        )
    if shift:
        return ShiftingReader(network, samples, longest)
    if samples == 1 and reads_by_word(network):
        return QuantizedReader(network, longest)
    return Reader(network, samples, longest)
