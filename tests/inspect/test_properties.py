"""Identities that hold for any text, block, head and position."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inspect.conftest import uncapped

# The fixtures give a network and a function that inspects it; neither changes between examples.
FEW = settings(max_examples=10)
TEXTS = st.lists(st.integers(0, 10), min_size=1, max_size=12)
BLOCKS, HEADS = st.integers(0, 2), st.integers(0, 3)


def near(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    return bool((actual - expected).norm() <= 1e-5 * expected.norm().clamp(min=1.0))


@FEW
@given(ids=TEXTS, block=BLOCKS, head=HEADS)
def test_attention_weights_sum_to_one_and_ignore_the_future(inspect, ids, block, head):
    trace = inspect(tuple(ids))
    weights = trace.block[block].head[head].weights
    assert near(weights.sum(1), torch.ones(len(ids)))
    if trace.config.causal:
        assert (weights.triu(1) == 0).all()


@FEW
@given(ids=TEXTS, block=BLOCKS)
def test_heads_and_bias_sum_to_the_attention(inspect, network, added, ids, block):
    trace = inspect(tuple(ids))
    total = sum(trace.block[block].head[j].output for j in range(4))
    bias = network.blocks[block].attention.output.bias
    assert near(total if bias is None else total + bias.detach(), trace.block[block].attention)
    attention, feedforward = (trace[name] for name in added(block))
    middle = trace.block[block].input + attention
    assert near(middle + feedforward, trace.block[block].output)
    if not trace.config.parallel:
        assert near(middle, trace.block[block].middle)


@FEW
@given(ids=TEXTS, token=st.integers(0, 10), data=st.data())
def test_attributions_sum_to_the_logit(inspect, ids, token, data):
    trace = inspect(tuple(ids))
    position = data.draw(st.integers(0, len(ids) - 1))
    actual = trace.attribute(token, position)
    assert abs(actual.total - uncapped(trace)[position, token]) <= 1e-5 * actual.values.abs().sum()


@FEW
@given(ids=TEXTS, block=BLOCKS, head=HEADS, data=st.data())
def test_score_attributions_sum_to_the_score(inspect, ids, block, head, data):
    trace = inspect(tuple(ids))
    i, j = (data.draw(st.integers(0, len(ids) - 1)) for _ in range(2))
    view = trace.block[block].head[head]
    actual = view.why(i, j)
    # The dot product of long, nearly orthogonal vectors is small; its rounding error is not.
    rounding = 1e-6 * view.query[i].norm() * view.key[j].norm()
    assert abs(actual.total - view.scores[i, j]) <= 1e-5 * actual.values.abs().sum() + rounding


@FEW
@given(ids=TEXTS, data=st.data())
def test_writing_the_same_value_changes_nothing(inspect, ids, data):
    trace = inspect(tuple(ids))
    name = data.draw(st.sampled_from(trace.sites()))
    assert near(trace.edit({name: trace[name]}).logits, trace.logits)


@FEW
@given(ids=TEXTS, block=st.integers(0, 1))
def test_lens_equals_ablating_all_later_blocks(inspect, added, ids, block):
    trace = inspect(tuple(ids))
    silent = {name: 0 for i in range(block + 1, 3) for name in added(i)}
    assert near(trace.edit(silent).logits, trace.lens()[block])
