"""What each head does: how much of its weight goes to the token before, to the first, to its like, …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.text.stories import Span, story

SEED = 1  # of stories that the demo does not train on
REPEATED = 4  # random sequences
STORIES = 30


@dataclass(frozen=True)
class HeadScores:
    """For each kind of looking the mean weight that each head gives it: blocks × heads, from 0 to 1."""

    previous: Tensor  # to the token before
    first: Tensor  # to the first token
    repeated: Tensor  # to where the same token stood before
    induction: Tensor  # to what came after the same token then
    antecedent: Tensor  # from a pronoun to what it stands for, in stories
    # What a head that looks at all it can see alike would score, by kind.
    chance: Mapping[str, float] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, Tensor]:
        """The scores by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "chance"}

    def best(self, kind: str) -> tuple[int, int, float]:
        """The head that does this most: its block, its number, its score."""
        if kind not in self.kinds:
            raise UserError(f"{kind!r} is not scored; there are {', '.join(self.kinds)}")
        scores = self.kinds[kind]
        block, head = divmod(int(scores.argmax()), scores.shape[1])
        return block, head, scores.max().item()


def heads(
    model: LanguageModel,
    sequences: int = REPEATED,
    stories: int = STORIES,
    check: Callable[[], object] = lambda: None,
) -> HeadScores:
    """Score every head, on random tokens said twice and on stories whose truth is known.

    `check` is called between two of these: what it raises ends it.
    """
    network = model.transformer("heads")
    n = min(50, model.config.n_context // 2)
    if n < 3:
        raise UserError(f"a context of {model.config.n_context} is too short to say anything twice")
    generator = torch.Generator().manual_seed(0)
    second = torch.arange(n, 2 * n)  # the positions at which all is said again
    kinds = torch.zeros(4, network.config.n_block, network.config.n_head)
    for _ in range(sequences):
        check()
        once = torch.randint(model.config.n_vocab, (1, n), generator=generator)
        ids = torch.cat((once, once), dim=1).to(model.device)
        with torch.no_grad():
            trace = Trace(network, ids, [[]])
            for i in range(network.config.n_block):
                weights = trace.weights(i).cpu()
                for kind, place in enumerate(
                    (second - 1, torch.zeros_like(second), second - n, second - n + 1)
                ):
                    kinds[kind, i] += weights[:, second, place].mean(-1) / sequences
    antecedent, alike, _ = find_antecedents(model, stories, check)
    seen = second + 1 if model.config.causal else torch.full_like(second, 2 * n)
    chance = dict.fromkeys(("previous", "first", "repeated", "induction"), (1 / seen).mean().item())
    previous, first, repeated, induction = kinds
    return HeadScores(previous, first, repeated, induction, antecedent, {**chance, "antecedent": alike})


def find_antecedents(
    model: LanguageModel, count: int, check: Callable[[], object] = lambda: None
) -> tuple[Tensor, float, int]:
    """How much of its weight each head puts on the antecedent, looking from the pronoun: blocks × heads.

    The mean over all pronouns of so many fresh stories; what a head that looks at all words alike would
    score; and how many pronouns those were.
    """
    config = model.transformer("heads").config
    alike, total, pronouns = 0.0, torch.zeros(config.n_block, config.n_head), 0
    for number in range(count):
        check()
        told = story(SEED, number)
        pairs = _positions(model, told.text, [(each.span, each.antecedent) for each in told.pronouns])
        trace = need_heads(model.inspect(_within_context(model, told.text)), "heads")
        for i in range(config.n_block):
            weights = trace.weights(i).cpu()
            for pronoun, antecedent in pairs:
                total[i] += weights[:, pronoun, antecedent]
        T = trace.ids.shape[1]
        alike += sum(1 / (pronoun + 1 if model.config.causal else T) for pronoun, _ in pairs)
        pronouns += len(pairs)
    seen = max(1, pronouns)  # none, where the context is too short to hold one
    return total / seen, alike / seen, pronouns


def _within_context(model: LanguageModel, text: str) -> str:
    room = model.config.n_context - len(model.tokenizer.start_ids)
    return model.tokenizer.decode(model.tokenizer.encode(text)[:room])


def _positions(model: LanguageModel, text: str, pairs: list[tuple[Span, Span]]) -> list[tuple[int, int]]:
    """The positions of the last tokens of two spans of text, for those pairs that the context holds."""
    ends = [0] * len(model.tokenizer.start_ids)
    for piece in model.tokenizer.pieces(model.tokenizer.encode(_within_context(model, text))):
        ends.append((ends[-1] if ends else 0) + len(piece))

    def position(span: Span) -> int | None:
        return next((i for i, end in enumerate(ends) if end >= span.stop), None)

    found = [(position(one), position(other)) for one, other in pairs]
    return [(one, other) for one, other in found if one is not None and other is not None]
