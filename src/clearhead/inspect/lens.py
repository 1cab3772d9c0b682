"""The logit lens: what the model would predict if it stopped after each block."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.indexing import check_index
from clearhead.inspect.residual_trace import ResidualTrace
from clearhead.summary_table import html_table


class Lens:
    """`lens[k]` returns the logits after block k: T V. The last are the model's own logits."""

    def __init__(self, trace: ResidualTrace) -> None:
        self.trace = trace

    def __len__(self) -> int:
        return self.trace.config.n_block

    def __repr__(self) -> str:
        predictions = ", ".join(repr(tokens[0][0]) for tokens in self.tokens(count=1))
        return f"Lens({len(self)} blocks, predicting {predictions})"

    def _repr_html_(self) -> str:
        rows = [
            (f"after block {k}", *(f"{text!r} {probability:.1%}" for text, probability in tokens))
            for k, tokens in enumerate(self.tokens(count=3))
        ]
        return html_table((), rows, f"Most likely next tokens after position {len(self.trace) - 1}")

    def __getitem__(self, block: int) -> Tensor:
        trace, number = self.trace, check_index(block, len(self), "block")
        with torch.set_grad_enabled(trace.grad):
            return trace.unembed(trace.read(f"block.{number}.output")[None])[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[k] for k in range(len(self)))

    def tokens(self, position: int = -1, count: int = 5) -> list[list[tuple[str, float]]]:
        """Return the most likely next tokens at a position for each block, with their probabilities."""
        position, likeliest = self.trace.check_position(position), []
        if not isinstance(count, int) or count < 1:
            raise UserError(f"count = {count!r}: expected at least 1")
        count = min(count, self.trace.config.n_vocab)
        for k in range(len(self)):
            best = self[k][position].softmax(-1).topk(count)
            texts = self.trace.token_texts(best.indices.tolist())
            likeliest.append(list(zip(texts, best.values.tolist(), strict=True)))
        return likeliest
