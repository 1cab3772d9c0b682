"""Head scores: how much of its attention each head puts on the previous token, the first, duplicates, …"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

import torch
from torch import Tensor

from clearhead.errors import UserError
from clearhead.inspect.state_trace import need_heads
from clearhead.inspect.trace import Trace
from clearhead.language_model import LanguageModel
from clearhead.summary_table import html_table, plural, text_table
from clearhead.text.stories import Span, story

SEED = 1  # of stories that the demo does not train on
REPEATED = 4  # random sequences
STORIES = 30
HEADINGS = ("role", "best head", "its score", "uniform attention")


@dataclass(frozen=True, repr=False)
class HeadScores:
    """Per role, each head's mean attention weight on the role's target: blocks × heads, from 0 to 1."""

    previous: Tensor  # to the previous token
    first: Tensor  # to the first token
    repeated: Tensor  # to the earlier occurrence of the same token
    induction: Tensor  # to the token after that occurrence
    antecedent: Tensor  # from a pronoun to its antecedent, in stories
    # The score of uniform attention, by role.
    chance: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows = [(f"  {row[0]}", *row[1:]) for row in self._rows()]
        return f"HeadScores({self._shape})\n{text_table(('  role', *HEADINGS[1:]), rows)}"

    def _repr_html_(self) -> str:
        return html_table(HEADINGS, self._rows(), f"Head scores: {self._shape}")

    @property
    def _shape(self) -> str:
        n_block, n_head = self.previous.shape
        return f"{plural(n_block, 'block')} × {plural(n_head, 'head')}"

    def _rows(self) -> list[tuple[str, str, float, float | None]]:
        rows = []
        for kind in self.kinds:
            block, head, score = self.best(kind)
            rows.append((kind, f"block {block}, head {head}", score, self.chance.get(kind)))
        return rows

    @property
    def kinds(self) -> dict[str, Tensor]:
        """The scores by name."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "chance"}

    def best(self, kind: str) -> tuple[int, int, float]:
        """The head with the highest score: its block, its number, its score."""
        if kind not in self.kinds:
            raise UserError(f"unknown score {kind!r}: expected one of {', '.join(self.kinds)}")
        scores = self.kinds[kind]
        block, head = divmod(int(scores.argmax()), scores.shape[1])
        return block, head, scores.max().item()


def heads(
    model: LanguageModel,
    sequences: int = REPEATED,
    stories: int = STORIES,
    check: Callable[[], object] = lambda: None,
) -> HeadScores:
    """Score every head, on repeated random tokens and on stories with known antecedents.

    `check` is called before each text; an exception from it stops the scoring.
    """
    network = model.transformer("heads")
    n = min(50, model.config.n_context // 2)
    if n < 3:
        raise UserError(f"a context of {model.config.n_context} is too short for a repeated sequence")
    generator = torch.Generator().manual_seed(0)
    second = torch.arange(n, 2 * n)  # the positions of the repetition
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
    """The attention weight of each head from pronouns to their antecedents: blocks × heads.

    Returns the mean over all pronouns in fresh stories, the score of uniform attention, and the number of pronouns.
    """
    config = model.transformer("heads").config
    alike, total, pronouns = 0.0, torch.zeros(config.n_block, config.n_head), 0
    for number in range(count):
        check()
        sample = story(SEED, number)
        try:
            text = _within_context(model, sample.text)
        except UserError:  # the tokenizer does not know all characters in the stories
            continue
        pairs = _positions(model, text, [(each.span, each.antecedent) for each in sample.pronouns])
        trace = need_heads(model.inspect(text), "the heads lab")
        for i in range(config.n_block):
            weights = trace.weights(i).cpu()
            for pronoun, antecedent in pairs:
                total[i] += weights[:, pronoun, antecedent]
        T = trace.ids.shape[1]
        alike += sum(1 / (pronoun + 1 if model.config.causal else T) for pronoun, _ in pairs)
        pronouns += len(pairs)
    seen = max(1, pronouns)  # none, if the context is too short
    return total / seen, alike / seen, pronouns


def _within_context(model: LanguageModel, text: str) -> str:
    available = model.config.n_context - len(model.tokenizer.start_ids)
    return model.tokenizer.decode(model.tokenizer.encode(text)[:available])


def _positions(model: LanguageModel, text: str, pairs: list[tuple[Span, Span]]) -> list[tuple[int, int]]:
    """The positions of the last tokens of the two spans in each pair, for the pairs that fit into the context."""
    ends = [0] * len(model.tokenizer.start_ids)
    for piece in model.tokenizer.pieces(model.tokenizer.encode(text)):
        ends.append((ends[-1] if ends else 0) + len(piece))

    def position(span: Span) -> int | None:
        return next((i for i, end in enumerate(ends) if end >= span.stop), None)

    found = [(position(one), position(other)) for one, other in pairs]
    return [(one, other) for one, other in found if one is not None and other is not None]
