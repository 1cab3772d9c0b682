"""The trace of a text, or of several at once, with whatever kind of network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.errors import UserError
from clearhead.inspect.batch import Batch
from clearhead.inspect.edits import Edit, Edits, Value
from clearhead.inspect.read_text import UNNAMED
from clearhead.inspect.state_trace import AnyTrace, StateTrace
from clearhead.inspect.trace import Trace
from clearhead.networks import Network, need_transformer
from clearhead.text.given import read_given, read_several
from clearhead.text.tokenizer import Tokenizer


def trace_given(
    network: Network,
    tokenizer: Tokenizer,
    given: str | Sequence[str] | Sequence[int] | Tensor,
    edit: Mapping[str, Value | Edit] | None = None,
    grad: bool = False,
    padding: str = "right",
    watch: Callable[[], object] = lambda: None,
    model_name: str = UNNAMED,
) -> AnyTrace:
    """What `LanguageModel.inspect` gives."""
    config = network.config
    if isinstance(network, NGram):
        raise UserError(
            "an n-gram model has no streams to look at; it can show how likely each next word is: "
            "model.logits(text), or generate with log_probabilities"
        )
    texts, single = read_several(given)
    batch = Batch([read_given(text, tokenizer, config.n_vocab) for text in texts], tokenizer, padding)
    device = next(network.parameters()).device
    ids = batch.ids.to(device)
    padding_mask = None if batch.padding_mask is None else batch.padding_mask.to(device)
    with nullcontext() if grad else torch.no_grad():
        if isinstance(network, Recurrent):
            if edit:
                need_transformer(config, "an edit")
            if padding == "left":
                need_transformer(config, "a state that padding before a text leaves alone")
            return StateTrace(network, ids, batch.tokens, single, tokenizer, model_name)
        edits = Edits.parse(edit or {}, network.config)
        return Trace(
            network,
            ids,
            batch.tokens,
            padding_mask,
            single,
            edits,
            tokenizer,
            watch=watch,
            model_name=model_name,
        )
