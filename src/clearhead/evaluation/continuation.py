"""Continuations: the ids of a context and the text after it, and where the text begins."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.model.config import Config
from clearhead.networks import AnyConfig, EnsembleConfig
from clearhead.text.inputs import encode_prompt
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Continuation:
    """The ids of a context followed by a text; `start` is the index of the text's first token."""

    ids: tuple[int, ...]
    start: int

    @classmethod
    def encode(cls, tokenizer: Tokenizer, context: str, text: str, n_vocab: int) -> Continuation:
        """Encode both together, and split after as many tokens as the context alone has without its trailing spaces.

        Without a context, the text follows the tokens that start a document.
        """
        kept = context.rstrip()
        text = context[len(kept) :] + text
        if not kept:
            before = encode_prompt(None, tokenizer, n_vocab)
            return cls((*before, *tokenizer.encode(text)), len(before))
        first = tokenizer.start_ids
        ids = (*first, *tokenizer.encode(kept + text))
        # The end of the context and the whole text may be one token.
        return cls(ids, min(len(first) + len(tokenizer.encode(kept)), len(ids) - 1))

    @property
    def length(self) -> int:
        """The number of tokens in the text."""
        return len(self.ids) - self.start

    def cut(self, limit: int | None) -> Continuation:
        """Cut off the start of the context so that the model can read all tokens but the last at once."""
        cut = 0 if limit is None else max(0, len(self.ids) - 1 - limit)
        return Continuation(self.ids[cut:], self.start - cut)


def context_limit(config: AnyConfig) -> int | None:
    """The number of tokens that a model can read at once; None for recurrent networks and n-gram models."""
    members = config.members if isinstance(config, EnsembleConfig) else (config,)
    return config.n_context if any(isinstance(each, Config) for each in members) else None


def join(context: str, text: str, delimiter: str) -> str:
    """The text after the context, preceded by the delimiter unless there is no context or either has a space there."""
    spaced = not context or context[-1].isspace() or text[0].isspace()
    return text if spaced else delimiter + text
