import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.decoders import trace_after
from clearhead.language_model import LanguageModel
from clearhead.model.config import PRESETS, preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer


@pytest.fixture(params=PRESETS)
def model(request):
    torch.manual_seed(0)
    tokenizer = Tokenizer.train("byte", [])
    config = preset(request.param, n_vocab=257, n_context=24, n_block=2, n_head=2, d_model=16)
    network = Transformer(config)
    for parameter in network.parameters():
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    network.embedding.weight.data[128:] -= (
        4 * network.final_norm.gain.detach()
    )  # so that it generates ASCII text
    return LanguageModel(network, tokenizer)


def test_trace_recorded_during_generation_equals_a_trace_of_the_text(model):
    text, trace = model.generate("ab", tokens=12, seed=3, inspect=True)
    assert text == model.generate("ab", tokens=12, seed=3)
    whole = trace.ids[0].tolist()
    assert model.tokenizer.decode(whole) == "ab" + text
    assert trace.verify() <= 1e-5
    with torch.no_grad():
        again = type(trace)(model.network, trace.ids, [[""] * len(whole)])
    for name in again.sites():
        actual, expected = trace[name], again[name]
        finite = expected.isfinite()
        assert torch.allclose(actual[finite], expected[finite], rtol=1e-4, atol=1e-4), name


def test_trace_covers_the_last_context_window(model):
    text, trace = model.generate("ab", tokens=40, seed=3, inspect=True)
    assert trace.ids.shape[1] == 24
    assert text.endswith(model.tokenizer.decode(trace.ids[0].tolist())[-8:])
    assert trace.verify() <= 1e-5


def test_edits_apply_at_every_token(model):
    site = "block.1.head.0.output"
    edited = model.generate("ab", tokens=8, temperature=0, edit={site: 0})
    ids = model.tokenizer.encode("ab")
    for _ in range(8):
        trace = model.inspect(model.tokenizer.decode(ids), edit={site: 0})
        ids.append(int(trace.logits[-1].argmax()))
    assert edited == model.tokenizer.decode(ids)[2:]
    nothing = model.generate("ab", tokens=8, temperature=0, edit={site: lambda x: x})
    assert nothing == model.generate("ab", tokens=8, temperature=0)


def test_generation_combines_edits_and_a_trace(model):
    edit = {"block.1.head.0.output": 0, "block.0.hidden": lambda x: 2 * x}
    text, trace = model.generate("ab", tokens=8, seed=3, inspect=True, edit=edit)
    assert text == model.generate("ab", tokens=8, seed=3, edit=edit)
    assert model.tokenizer.decode(trace.ids[0].tolist()) == "ab" + text
    with torch.no_grad():
        plain = type(trace)(model.network, trace.ids, [[]])
    assert torch.allclose(trace.logits, plain.edit(edit).logits, atol=1e-5)
    assert not torch.allclose(trace.logits, plain.logits, atol=1e-3)
    assert trace["block.1.head.0.output"].abs().max() == 0


def test_incompatible_options_raise(model):
    with pytest.raises(UserError, match="`inspect` applies to one text"):
        model.generate("ab", inspect=True, samples=2)
    with pytest.raises(UserError, match="blocks 0 to 1"):
        model.generate("ab", edit={"block.7.input": 0})


@pytest.mark.parametrize("same", [pytest.param(1, marks=pytest.mark.slow), 6])
def test_trace_after_a_shared_prefix_equals_a_full_trace(inspect, network, same):
    if not network.config.causal:
        pytest.skip("in a bidirectional model, later tokens change the values of earlier ones")
    tokenizer = Tokenizer.train("byte", [])
    before, ids = inspect(tokenizer=tokenizer), [*[3, 1, 4, 1, 5, 9][:same], 7, 7, 0]
    trace, alone = trace_after(before, ids, same), inspect(ids)
    assert (len(trace), trace.ids.tolist()) == (len(ids), [ids])
    assert trace.verify() <= 1e-5
    for name in alone.sites():
        torch.testing.assert_close(trace[name], alone[name], rtol=1e-4, atol=1e-5)
    # The shared prefix was not recomputed.
    assert torch.equal(trace.stream.last[:, :same], before.stream.last[:, :same])
