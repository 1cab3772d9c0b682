"""A head that moves information between residual streams: an induction head forms, and is then ablated.

Random tokens are repeated. To predict the repetition, one head tells each token which token precedes it, and a
head in the next block attends to the token that follows the earlier occurrence of the current one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.inspect.trace import Trace
from clearhead.labs.lab import Lines, Result, Table, Value, Watch
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer

TOKENS = 32  # in the vocabulary
SHORTEST, LONGEST = 8, 16  # lengths of the repeated part; with a fixed length, counting back would be enough
SEQUENCES = 32  # per step
TESTED, TESTED_SEED = 64, 1_000_000  # held-out sequences
WIDTH, HEAD_WIDTH = 32, 16
# Positions that a token attends to in the first block, including its own: few, so that the previous-token head
# forms sooner.
SEES = 4
LARGER = 5.0  # multiplies the usual initial weights; a network this narrow barely trains from smaller ones
RATE = 5e-3
UNKNOWABLE = 0.1  # weight of the loss on the first half, which is random: a uniform prediction is best
MEASURED = 25  # evaluations during training
DOES = 0.5  # weight on its target above which a head counts as an induction head
BEFORE, FOLLOWER = (
    -1,
    1 - LONGEST,
)  # targets of attention: the previous token; the token after the earlier occurrence


def run(heads: int, steps: int, seed: int, watch: Watch) -> Result:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _make(heads)
    tested = _said_twice(TESTED, LONGEST, torch.Generator().manual_seed(TESTED_SEED))
    at: list[float] = []
    losses: dict[str, list[float | None]] = {"first occurrence": [], "repetition": []}
    looks: dict[str, list[float | None]] = {
        "to the token after the earlier occurrence": [],
        "to the previous token": [],
    }
    for step in _train(network, steps, seed, watch):
        trace = _trace(network, tested)
        at.append(step)
        for line, loss in zip(losses.values(), _losses(trace.logits, tested), strict=True):
            line.append(loss.item())
        looks["to the token after the earlier occurrence"].append(_looking(trace, FOLLOWER)[1].max().item())
        looks["to the previous token"].append(_looking(trace, BEFORE)[0].max().item())
    induction, previous = _looking(trace, FOLLOWER), _looking(trace, BEFORE)
    finders = [head for head in range(heads) if induction[1, head] > DOES]
    finder, teller = int(induction[1].argmax()), int(previous[0].argmax())
    alone = {(i, head): _silence(trace, [(i, head)]) for i in range(2) for head in range(heads)}
    together = _silence(trace, [(1, head) for head in finders])
    rows: list[list[Value]] = [[None, None, losses["repetition"][-1]]]
    rows += [[induction[place].item(), previous[place].item(), loss] for place, loss in alone.items()]
    rows += [[None, None, together]]
    return Result(
        lab="stream",
        settings={"heads": heads, "steps": steps, "seed": seed},
        findings={
            "induction head": _name(1, finder),
            "its weight on the token after the earlier occurrence": induction[1, finder].item(),
            "previous-token head": _name(0, teller),
            "its weight on the previous token": previous[0, teller].item(),
            "induction heads": len(finders),
            "loss, first occurrence": losses["first occurrence"][-1],
            "loss, repetition": losses["repetition"][-1],
            "without the induction head": alone[1, finder],
            "without any induction heads": together,
            "without the previous-token head": alone[0, teller],
        },
        parts=[
            Lines("loss", "steps", "loss", at, losses),
            Lines("attention", "steps", "weight of the best head", at, looks),
            Table(
                "ablated",
                ["no head", *(_name(*place) for place in alone), "all induction heads"],
                ["to the token after the earlier occurrence", "to the previous token", "loss, repetition"],
                rows,
            ),
            _draw_weights(trace, finder),
        ],
    )


def _make(heads: int) -> Transformer:
    config = preset(
        "lecture",
        n_vocab=TOKENS,
        n_context=2 * LONGEST,
        n_block=2,
        n_head=heads,
        d_model=WIDTH,
        d_head=HEAD_WIDTH,
        position="rotary",
        window=SEES,
        local_blocks=(0,),
    )
    network = Transformer(config)
    for weights in network.parameters():
        if weights.dim() == 2:
            weights.data.mul_(LARGER)
    return network


def _said_twice(count: int, length: int, random: torch.Generator) -> Tensor:
    """Distinct tokens in random order, followed by the same sequence again."""
    once = torch.rand(count, TOKENS, generator=random).argsort(1)[:, :length]
    return torch.cat((once, once), dim=1)


def _train(network: Transformer, steps: int, seed: int, watch: Watch) -> Iterator[int]:
    """Train, and yield the steps at which to evaluate, from before the first step to after the last."""
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.01)
    every = max(1, steps // MEASURED)
    for step in range(steps):
        if step % every == 0:
            yield step
        watch()
        length = int(torch.randint(SHORTEST, LONGEST + 1, (), generator=random))
        ids = _said_twice(SEQUENCES, length, random)
        first, again = _losses(network(ids), ids)
        loss = again + UNKNOWABLE * first
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    yield steps


def _trace(network: Transformer, ids: Tensor) -> Trace:
    with torch.no_grad():
        return Trace(network, ids, [[]] * len(ids), single=False)


def _losses(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The losses on the first occurrence and on the repetition, without the unpredictable first token of each."""
    length = ids.shape[1] // 2
    losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none")
    return losses[:, : length - 1].mean(), losses[:, length:].mean()


def _looking(trace: Trace, where: int) -> Tensor:
    """The mean weight that each head puts on the position at this offset, during the repetition: 2 H."""
    again = torch.arange(LONGEST, 2 * LONGEST)
    return torch.stack([trace.weights(i)[:, :, again, again + where].mean((0, 2)) for i in range(2)])


def _silence(trace: Trace, heads: Iterable[tuple[int, int]]) -> float:
    """The loss on the repetition with these heads ablated."""
    silent = trace.edit({f"{_name(*place)}.output": 0.0 for place in heads})
    return _losses(silent.logits, silent.ids)[1].item()


def _name(block: int, head: int) -> str:
    return f"block.{block}.head.{head}"


def _draw_weights(trace: Trace, head: int) -> Table:
    """The attention of a head in one sequence, from the repetition to the first occurrence."""
    weights = trace.weights(1)[0, head, LONGEST:, :LONGEST]
    names = [str(token) for token in trace.ids[0, :LONGEST].tolist()]
    values: list[list[Value]] = [[round(weight, 2) for weight in row] for row in weights.tolist()]
    return Table("attention pattern", names, names, values, shaded=True)
