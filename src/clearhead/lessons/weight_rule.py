"""The chain rule for a weight: a sum over the positions that use it."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor

from clearhead.inspect.sites import Site, unembedded
from clearhead.lessons.chain_rule import ChainRule, Factor, NumberIndex, Rule, RuleUses
from clearhead.lessons.gradients import refuse_product


def weight_rule(chain: ChainRule, name: str, index: NumberIndex) -> Rule:
    """The rule for one number in a weight of the chain's network."""
    refuse_product(name, "chain rule")
    if name in ("embedding.W", "unembedding.W", "position.W"):
        return Rule("weight", _at_the_ends(chain, name, index))
    match = re.fullmatch(r"(?:block\.(\d+)\.)?(?:head\.(\d+)\.)?(.+)", name)
    assert match is not None
    block, head = (None if number is None else int(number) for number in match.groups()[:2])
    part, column = match[3], index[-1]
    if part.endswith((".gain", ".shift")):
        return _norm_weight(chain, part, block, column)
    assert block is not None
    source, outputs = _find_sites(chain, part, block, head)
    if part.startswith("b_"):
        ones = torch.ones(chain.length)
        return Rule("weight", [RuleUses(site, _column(chain, column), ones) for site in outputs])
    row = index[0]
    derivatives = chain.value(source)[:, row]
    factor = _factor(source, row)
    return Rule("weight", [RuleUses(site, _column(chain, column), derivatives, factor) for site in outputs])


def _column(chain: ChainRule, column: int) -> list[NumberIndex]:
    return [(t, column) for t in range(chain.length)]


def _factor(source: Site, row: int) -> Callable[[NumberIndex], Factor]:
    """The number of the input that each position multiplies with the weight."""
    return lambda at: Factor(str(source), (at[0], row))


def _at_the_ends(chain: ChainRule, name: str, index: NumberIndex) -> list[RuleUses]:
    row, column = index
    if name == "position.W":
        places = chain.part.forward.positions
        own = places.expand_as(chain.part.forward.ids)[chain.text]
        return [_rows_equal(own, row, Site("position"), column, 1.0)]
    uses = []
    if name == "embedding.W" or chain.config.tied:
        token, feature = (row, column) if name == "embedding.W" else (column, row)
        ids = chain.part.forward.ids[chain.text]
        uses.append(_rows_equal(ids, token, Site("embedding"), feature, chain.config.embedding_scale))
    if name == "unembedding.W" or chain.config.tied:
        feature, token = (row, column) if name == "unembedding.W" else (column, row)
        derivatives = chain.value(Site("final"))[:, feature]
        uses.append(
            RuleUses(
                unembedded(chain.config),
                _column(chain, token),
                derivatives,
                _factor(Site("final"), feature),
            )
        )
    return uses


def _rows_equal(ids: Tensor, row: int, site: Site, column: int, scale: float) -> RuleUses:
    """The positions that look up this row of a table."""
    indices = [(t, column) for t, own in enumerate(ids.tolist()) if own == row]
    return RuleUses(site, indices, torch.full((len(indices),), scale))


def _find_sites(chain: ChainRule, part: str, block: int, head: int | None) -> tuple[Site, list[Site]]:
    """The input and the outputs of a matrix."""
    role = part.split("_")[1]
    if head is not None and role in "QKV":
        group = 1 if role == "Q" else chain.config.n_head // chain.config.n_kv_head
        sharing = range(head // group * group, (head // group + 1) * group)
        output = {"Q": "query_raw", "K": "key_raw", "V": "value"}[role]
        return Site("normed", block), [Site(output, block, head=each) for each in sharing]
    if head is not None:
        return Site("mixed", block, head=head), [Site("output", block, head=head)]
    hidden = "hidden_up" if chain.config.gated else "hidden_raw"
    sites = {
        "1": ("normed2", hidden),
        "gate": ("normed2", "hidden_gate"),
        "2": ("hidden", "feedforward"),
        "O": ("attention", "attention"),  # only its bias is used here
    }
    source, output = sites[role]
    return Site(source, block), [Site(output, block)]


def _norm_weight(chain: ChainRule, part: str, block: int | None, column: int) -> Rule:
    """γ is multiplied by (x - μ)/σ, and β is added."""
    normed, kind = part.split(".")
    if normed in ("query_norm", "key_norm"):
        assert block is not None
        role, heads = normed.removesuffix("_norm"), range(chain.config.n_head)
        if chain.config.qk_norm_joint:
            return _joint_gain(chain, role, block, column)
        pairs = [(Site(f"{role}_normed", block, head=j), Site(f"{role}_raw", block, head=j)) for j in heads]
        norm = getattr(chain.block(block).attention, normed)
    else:
        pairs = [(Site(normed, block), chain.norm_input(normed, block))]
        norm = chain.norm_of(normed, block)
    uses = []
    for output, source in pairs:
        derivatives = torch.ones(chain.length)
        if kind == "gain":
            x = chain.value(source)
            centered = x if norm.shift is None else x - x.mean(-1, keepdim=True)
            scale = (centered.pow(2).mean(-1) + norm.epsilon).sqrt()
            derivatives = centered[:, column] / scale
        uses.append(RuleUses(output, _column(chain, column), derivatives))
    return Rule("weight", uses)


def _joint_gain(chain: ChainRule, role: str, block: int, column: int) -> Rule:
    """γ of a QK-norm over all heads together: each number belongs to one query, or to the heads that share a key."""
    config = chain.config
    number, feature = divmod(column, config.d_head)
    group = 1 if role == "query" else config.n_head // config.n_kv_head
    x = torch.stack([chain.value(Site(f"{role}_raw", block, head=j)) for j in range(config.n_head)])  # H T D
    scale = (x.pow(2).mean((0, 2)) + config.norm_epsilon).sqrt()
    uses = [
        RuleUses(Site(f"{role}_normed", block, head=j), _column(chain, feature), x[j, :, feature] / scale)
        for j in range(group * number, group * (number + 1))
    ]
    return Rule("weight", uses)
