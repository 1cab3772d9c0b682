"""The trace of one text or a batch of texts, for any kind of network that has one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext

import torch
from torch import Tensor

from clearhead.classics.ngram import NGram
from clearhead.classics.recurrent import Recurrent
from clearhead.errors import UserError
from clearhead.inspect.base_trace import UNNAMED
from clearhead.inspect.edits import Edit, Edits, EditValue
from clearhead.inspect.state_trace import AnyTrace, StateTrace
from clearhead.inspect.trace import Trace
from clearhead.networks import Network, need_single, need_transformer
from clearhead.text.inputs import encode_text, split_texts
from clearhead.text.tokenizer import Tokenizer


class PaddedBatch:
    """Texts padded into a batch: `ids` and `padding_mask` (False at padding, None without padding) are B T;
    `tokens` has the pieces of each text.
    """

    def __init__(self, rows: Sequence[list[int]], tokenizer: Tokenizer, padding: str) -> None:
        if padding not in ("left", "right"):
            raise UserError(f"padding = {padding!r}: expected left or right")
        longest = max(map(len, rows))
        self.ids = torch.full((len(rows), longest), tokenizer.end_id or 0)
        padding_mask = torch.zeros(self.ids.shape, dtype=torch.bool)
        for row, (padded, marks) in zip(rows, zip(self.ids, padding_mask, strict=True), strict=True):
            place = slice(0, len(row)) if padding == "right" else slice(longest - len(row), longest)
            padded[place], marks[place] = torch.tensor(row), True
        self.padding_mask = None if padding_mask.all() else padding_mask
        self.tokens = [tokenizer.pieces(row.tolist()) for row in self.ids]


def make_trace(
    network: Network,
    tokenizer: Tokenizer,
    text: str | Sequence[str] | Sequence[int] | Tensor,
    edit: Mapping[str, EditValue | Edit] | None = None,
    grad: bool = False,
    padding: str = "right",
    watch: Callable[[], object] = lambda: None,
    model_name: str = UNNAMED,
) -> AnyTrace:
    """Run the network on a text or a batch of texts and return the trace; see `LanguageModel.inspect`."""
    network = need_single(network, "a trace")
    if isinstance(network, NGram):
        raise UserError(
            "an n-gram model has no residual stream to inspect; for the probabilities of the next token, generate text "
            "with log-probabilities"
        )
    config = network.config
    texts, single = split_texts(text)
    batch = PaddedBatch([encode_text(each, tokenizer, config.n_vocab) for each in texts], tokenizer, padding)
    device = next(network.parameters()).device
    ids = batch.ids.to(device)
    padding_mask = None if batch.padding_mask is None else batch.padding_mask.to(device)
    with nullcontext() if grad else torch.no_grad():
        if isinstance(network, Recurrent):
            if edit:
                need_transformer(config, "an edit")
            if padding == "left":
                need_transformer(config, "left padding")
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
