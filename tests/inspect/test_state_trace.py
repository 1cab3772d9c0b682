"""Traces of recurrent networks: states as contextual vectors, and the gates behind them."""

import pytest
import torch

import clearhead as ch
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_cell import CELLS
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.errors import UserError
from clearhead.inspect.word_senses import map_senses
from clearhead.language_model import LanguageModel
from clearhead.text.tokenizer import Tokenizer

TEXT = "I'm scared of bats, and I swing bats."
NAMES = {
    "elman": ["input", "state"],
    "gru": ["input", "reset_gate", "update_gate", "proposal", "state"],
    "lstm": ["input", "input_gate", "forget_gate", "proposal", "output_gate", "cell", "state"],
}


@pytest.fixture(scope="module", params=CELLS)
def model(request):
    tokenizer = Tokenizer.train("byte", [])
    torch.manual_seed(2)
    config = RecurrentConfig(request.param, tokenizer.n_vocab, n_context=16, n_block=2, d_model=12)
    network = Recurrent(config)
    for parameter in network.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    return LanguageModel(network, tokenizer, name="recurrent")


def test_every_site_can_be_read(model):
    trace = model.inspect(TEXT)
    inside = [f"block.{i}.{name}" for i in range(2) for name in NAMES[model.config.kind]]
    assert trace.sites() == ["embedding", *inside, "final", "logits", "probabilities"]
    for name in trace.sites():
        width = model.config.n_vocab if name in ("logits", "probabilities") else 12
        assert trace.read(name).shape == (len(TEXT), width)
        assert torch.equal(trace.read(name, rows=[3, 5], columns=[1]), trace[name][[3, 5]][:, [1]])
        assert name in trace
    assert "".join(trace.tokens) == TEXT
    assert torch.equal(trace.block[1].state, trace.final)
    assert torch.equal(trace.block[1].input, trace.block[0].state)
    assert torch.allclose(trace.logits, model.logits(TEXT), atol=1e-6)
    assert torch.allclose(trace.probabilities.sum(-1), torch.ones(len(TEXT)))
    assert trace.verify() < 1e-5
    assert trace.model_name == "recurrent"


def test_gates_and_cell_give_the_state(model):
    trace, kind = model.inspect(TEXT), model.config.kind
    block = trace.block[0]
    before = torch.cat((torch.zeros(1, 12), block.state[:-1]))
    if kind == "gru":
        made = (1 - block.update_gate) * block.proposal + block.update_gate * before
        torch.testing.assert_close(made, block.state)
        assert 0 < block.reset_gate.min() < block.reset_gate.max() < 1
    if kind == "lstm":
        torch.testing.assert_close(block.output_gate * block.cell.tanh(), block.state)
        kept = torch.cat((torch.zeros(1, 12), block.cell[:-1]))
        torch.testing.assert_close(block.forget_gate * kept + block.input_gate * block.proposal, block.cell)


def test_verify_detects_a_difference(model):
    trace = model.inspect(TEXT)
    trace.states[1] = trace.states[1] + 0.1
    assert trace.verify() > 0.01


def test_word_has_one_static_vector_and_many_states(model):
    trace = model.inspect(TEXT)
    cosines = trace.cosines("bats")
    assert cosines.shape == (3, 2, 2)  # the embedding and two states
    torch.testing.assert_close(cosines[0], torch.ones(2, 2))
    assert cosines[1:, 0, 1].max() < 0.9999
    first, second = (trace.vector("bats", block=0, occurrence=k) for k in (0, 1))
    assert cosines[1, 0, 1].item() == pytest.approx(
        torch.cosine_similarity(first, second, 0).item(), abs=1e-6
    )
    assert torch.equal(trace.vector("swing"), trace.final[trace.position_of("swing")])
    with pytest.raises(UserError, match="occurs at positions"):
        trace.vector("bats")
    # States are equal before the texts diverge, and differ after.
    other = model.inspect("I'm scared of bats, and I fly.")
    assert other.cosines("bats", trace)[1:, 0, 0].tolist() == pytest.approx([1.0, 1.0])
    senses = map_senses([trace, other], "bats")
    assert senses.cosines.shape == (3, 3, 3)


def test_batch_and_gradients(model):
    batch = model.inspect(["bats", TEXT])
    assert torch.allclose(batch.final[0, :4], model.inspect("bats").final, atol=1e-6)
    trace = model.inspect("bats", grad=True)
    trace.logits[-1, 0].backward()
    assert model.network.embedding.weight.grad.abs().sum() > 0
    model.network.zero_grad()


def test_text_may_exceed_the_training_context(model):
    assert len(model.inspect(TEXT)) > model.config.n_context


def test_generated_text_can_be_traced(model):
    text, trace = model.generate("bats", 10, inspect=True, seed=1)
    assert trace.ids[0].tolist() == model.tokenizer.encode("bats") + text.ids
    text, trace = model.generate("bats", 10, inspect=True, seed=1, stop=str(text)[4:6])
    assert trace.ids[0].tolist() == model.tokenizer.encode("bats" + text)


def test_transformer_only_features_raise(model):
    trace, kind = model.inspect("bats"), model.config.kind
    for call in (
        lambda: trace["block.0.head.0.weights"],
        lambda: trace.block[0].attention,
        lambda: trace.read("block.0.normed"),
        lambda: trace.lens(),
        lambda: trace.attribute(" tired"),
        lambda: trace.edit({"final": 0}),
        lambda: ch.figure(trace),
        lambda: ch.figure(trace, "lens"),
        lambda: ch.save_html(trace, "page.html"),
        lambda: ch.heads(model),
    ):
        with pytest.raises(UserError, match=f"of kind {kind}") as error:
            call()
        assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="edit"):
        model.inspect("bats", edit={"final": 0})
    with pytest.raises(UserError, match="padding"):
        model.inspect(["bats", TEXT], padding="left")
    with pytest.raises(UserError, match="blocks 0 to 1"):
        trace.read("block.2.state")
    with pytest.raises(UserError, match=r"did you mean 'state'"):
        trace.read("block.0.stat")
    with pytest.raises(UserError, match="there are blocks 0 to 1"):
        trace.block[2]
    assert "head" not in trace
    assert not hasattr(trace, "lens")


@pytest.mark.parametrize("model", ["lstm"], indirect=True)
def test_site_can_be_plotted(model, tmp_path):
    ch.figure(model.inspect(TEXT), "block.0.state").save(tmp_path / "state.svg")
    ch.figure(model.inspect(TEXT), "probabilities").save(tmp_path / "words.svg")
    assert "<svg" in (tmp_path / "state.svg").read_text()


def test_trace_is_shown_briefly(model):
    trace = model.inspect("bats")
    assert repr(trace) == f"StateTrace('bats': 4 positions, {len(trace.sites())} sites)"
    assert "next token" in trace._repr_html_()
    assert "heads" not in trace._repr_html_()
    assert not hasattr(trace.block[0], "_repr_html_")
