import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.steps import antecedent_scores, head_steps
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer


@pytest.fixture(params=["lecture", "gpt2", "modern", "both ways"])
def network(request):
    torch.manual_seed(0)
    name, more = ("modern", {"causal": False}) if request.param == "both ways" else (request.param, {})
    config = preset(name, n_vocab=9, n_context=12, n_block=2, n_head=4, n_kv_head=2, d_model=32, **more)
    made = Transformer(config).eval()
    for parameter in made.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return made


IDS = torch.tensor([1, 5, 2, 8, 0, 3, 3])


def test_the_heads_outputs_sum_to_what_the_block_really_computes(network):
    with torch.no_grad():
        positions = network.positions(IDS[None])
        rotation = network.rotation(positions)
        x = network.embed(IDS[None], positions)
        for i, block in enumerate(network.blocks):
            attention = block.attention(block.norm(x), rotation, causal=network.config.causal)[0]
            outputs = sum(head_steps(network, IDS, i, j).output for j in range(4))
            if block.attention.output.bias is not None:
                outputs = outputs + block.attention.output.bias
            assert torch.allclose(outputs, attention, rtol=1e-4, atol=1e-5)
            x = block(x, rotation, causal=network.config.causal)


def test_each_step_follows_from_the_one_before(network):
    steps = head_steps(network, IDS, 1, 3)
    assert torch.allclose(steps.scores, steps.query @ steps.key.T)
    assert torch.allclose(steps.scaled, steps.scores / 8**0.5)
    assert torch.allclose(steps.weights.sum(1), torch.ones(7))
    assert torch.allclose(steps.mixed, steps.weights @ steps.value)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    if network.config.causal:
        assert (steps.masked[future] == -torch.inf).all()
        assert (steps.weights[future] == 0).all()
    else:
        assert (steps.weights > 0).all()


def test_scores_are_the_mean_weight_on_the_antecedent(network):
    examples = [(IDS, 6, 2), (IDS[:4], 3, 0)]
    scores = antecedent_scores(network, examples)
    for i in range(2):
        for j in range(4):
            by_hand = [head_steps(network, ids, i, j).weights[at, to] for ids, at, to in examples]
            assert torch.allclose(scores[i, j], sum(by_hand) / 2)


@pytest.mark.parametrize(
    ("block", "head", "words"), [(2, 0, "blocks 0 to 1"), (0, 4, "heads 0 to 3"), (-1, 0, "blocks")]
)
def test_what_does_not_exist_is_answered_with_what_does(network, block, head, words):
    with pytest.raises(UserError, match=words):
        head_steps(network, IDS, block, head)
