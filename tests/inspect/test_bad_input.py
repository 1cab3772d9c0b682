"""Invalid input gives a one-line error; every common way to write valid input works."""

import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.inspect.edits import Edit
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

X, W = "block.0.head.1.output", "block.0.head.1.weights"


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    network = Transformer(preset("modern", n_vocab=257, n_context=32, n_block=2, n_head=2, d_model=16))
    for parameter in network.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return LanguageModel(network, Tokenizer.train("byte", []))


@pytest.fixture(scope="module")
def trace(model):
    return model.inspect("ab cd")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda m, t: t.block[9], "block 9 does not exist: there are blocks 0 to 1"),
        (lambda m, t: t.block[0].head[9], "head 9 does not exist: there are heads 0 to 1"),
        (lambda m, t: t.block[0].kv_head["a"], "kv_head 'a': expected an integer"),
        (lambda m, t: t.weights(5), "block 5 does not exist"),
        (lambda m, t: t["block.-1.input"], "this model has blocks 0 to 1"),
        (lambda m, t: t[3], "site 3: expected a name"),
        (lambda m, t: t.vector("ab", block=7), "this model has blocks 0 to 1"),
        (lambda m, t: t.vector(3), "word 3"),
        (lambda m, t: t.read(W, rows=9), "row 9 does not exist"),
        (lambda m, t: t.read(W, columns="a"), "column 'a'"),
        (lambda m, t: m.weight("block.0.head.7.W_Q"), "this model has heads 0 to 1"),
        (lambda m, t: m.weight("block.0.W_gat"), "did you mean 'block.0.W_gate'"),
        (lambda m, t: m.weight(3), "weight 3 does not exist"),
        (lambda m, t: t.lens().tokens(position=99), "position 99 does not exist"),
        (lambda m, t: t.lens().tokens(count=0), "count = 0"),
        (lambda m, t: t.lens()[5], "block 5 does not exist"),
        (lambda m, t: m.inspect(["a", "b"]).lens(), "this needs a trace of one text"),
        (lambda m, t: m.inspect(["a", "b"]).row(7), "row 7 does not exist: there are rows 0 to 1"),
        (lambda m, t: t.attribute(True), "token True"),
        (lambda m, t: t.attribute(-1), "token -1 does not exist"),
        (lambda m, t: t.attribute("a", position="b"), "position 'b'"),
        (lambda m, t: t.attribute("a")["nothing"], "'nothing' is not a part"),
        (lambda m, t: t.block[0].head[0].why("a", 0), "position 'a'"),
        (lambda m, t: t.block[0].kv_head[0].why(0, 0), "has no scores of its own"),
        (lambda m, t: t.compare(3), "expected a trace"),
        (lambda m, t: t.cosines("ab", 3), "the other trace differs"),
        (lambda m, t: t.sweep("head", lambda variant: None), "measure returned None"),
        (lambda m, t: t.sweep("head", lambda variant: variant.logits), "expected one number"),
        (lambda m, t: t.sweep("head", 3), "expected a function"),
        (lambda m, t: t.sweep("head", lambda variant: 0, patch_from=3), "expected a trace"),
        (lambda m, t: m.inspect(3), "expected a str, ids, or a list of texts"),
        (lambda m, t: m.inspect(b"a"), "expected a str, ids, or a list of texts"),
        (lambda m, t: m.inspect(["a", None]), "one of the texts is None"),
        (lambda m, t: m.inspect([1, 999]), "id 999 does not exist"),
        (lambda m, t: m.generate(3), "the prompt has type int"),
        (lambda m, t: m.generate("a", edit={X: float("nan")}), "no token can be sampled"),
        (lambda m, t: m.generate("a", edit=3), "expected a dict of sites and values"),
        (lambda m, t: t.edit(None), "expected a dict of sites and values"),
        (lambda m, t: t.edit({X: None}), "is not a value"),
        (lambda m, t: t.edit({X: "a"}), "is not a value"),
        (lambda m, t: t.edit({X: Edit(Edit(0))}), "is not a value"),
        (lambda m, t: t.edit({X: torch.zeros(5, 16, dtype=torch.complex64)}), "expected real numbers"),
        (lambda m, t: t.edit({X: lambda x: "a"}), "the function returned a str"),
        (lambda m, t: t.edit({X: Edit(0, at="a")}), "position 'a'"),
        (lambda m, t: t.edit({X: Edit(0, at=9)}), "position 9 does not exist: there are positions 0 to 4"),
        (lambda m, t: t.edit({X: Edit(0, row=1)}), "row 1 does not exist: there are rows 0 to 0"),
        (lambda m, t: t.edit({W: Edit(m.inspect("ab cd ef"), at=[1])}), "the value is 1×8, expected 1×5"),
        (lambda m, t: t.edit({X: torch.zeros(4, 16)}), "the value is 4×16, expected 5×16"),
        (lambda m, t: t.edit({X: Edit(m.inspect("ab"), at=[2, 3])}), "has positions 0 to 1, not 3"),
        (lambda m, t: t.edit({X: Edit(m.inspect("a"), at=[1])}), "has positions 0 to 0, not 1"),
        (
            lambda m, t: t.edit({W.replace("weights", "scores"): 0}).block[0].head[1].why(2, 1),
            "not a sum of parts",
        ),
    ],
)
def test_invalid_input_raises_a_one_line_error(model, trace, ask, message):
    with pytest.raises(UserError, match=message) as caught:
        ask(model, trace)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [np.float32(0), np.zeros((5, 16)), torch.tensor(0.0), lambda x: 0, False])
def test_edits_accept_any_numeric_value(trace, value):
    assert torch.equal(trace.edit({X: value}).logits, trace.edit({X: 0}).logits)


@pytest.mark.parametrize("at", [-1, np.int64(4), np.array([4]), slice(4, 5), [False] * 4 + [True]])
def test_edits_accept_any_selection_of_positions(trace, at):
    assert torch.equal(trace.edit({X: Edit(0, at=at)}).logits, trace.edit({X: Edit(0, at=[4])}).logits)
    assert torch.allclose(trace.edit({X: Edit(0, at=[])}).logits, trace.logits, atol=1e-5)


def test_common_ways_to_read_a_trace_work(model, trace):
    best = trace.logits[-1].argmax()
    assert trace.attribute(best).total == pytest.approx(trace.attribute(int(best)).total)
    assert trace.attribute(np.int64(5)).names == trace.attribute(5).names
    assert torch.equal(model.inspect(trace.ids[0]).logits, trace.logits)
    assert torch.equal(trace.embedding, trace["embedding"])
    assert torch.equal(trace.final_scale, trace["final.scale"])
    assert trace.read(W, rows=[]).shape == (0, 5)
    assert torch.equal(trace.read(W, columns=[1]), trace[W][:, [1]])
    assert torch.equal(trace.read(W, rows=[2, 4], columns=[1, 0]), trace[W][[2, 4]][:, [1, 0]])
    assert W in trace
    assert "nonsense" not in trace
    assert 3 not in trace
    assert not hasattr(trace.block[0], "nonsense")
    assert not hasattr(trace, "nonsense")
    assert len(trace) == 5
    assert "'ab cd'" in repr(trace)
    for shown in (trace.block[0], trace.block[0].head[1], trace.block[0].kv_head[0], trace.lens()):
        assert "object at" not in repr(shown)
    assert "weights" in dir(trace.block[0].head[0])
    assert not model.weight("block.0.W_1").requires_grad


def test_verify_returns_nan_for_nan(trace):
    assert np.isnan(trace.edit({X: float("nan")}).verify())


def test_row_of_a_batch_equals_the_text_alone(model):
    texts = ["ab cd", "abc defg hij"]
    for padding in ("left", "right"):
        batch = model.inspect(texts, padding=padding)
        for number, text in enumerate(texts):
            row, alone = batch.row(number), model.inspect(text)
            assert row.tokens == alone.tokens
            assert torch.allclose(row.logits, alone.logits, atol=1e-5)
            assert row.lens().tokens()[-1][0][0] == alone.lens().tokens()[-1][0][0]
            assert row.attribute(65).total == pytest.approx(alone.attribute(65).total, abs=1e-4)
            assert torch.allclose(row[W], alone[W], atol=1e-5)


def test_edit_positions_ignore_padding(model):
    texts = ["ab cd", "abc defg hij"]
    other = model.inspect(["xy zw", "xyz uvwx rst"], padding="left")
    for padding in ("left", "right"):
        for edit in (Edit(0, at=[-1]), Edit(0, at=[0, 2]), Edit(0, at=slice(1, 7)), Edit(other, at=[1, -1])):
            batch = model.inspect(texts, padding=padding).edit({"block.1.input": edit})
            for number, text in enumerate(texts):
                single = Edit(other.row(number), at=edit.at) if edit.value is other else edit
                alone = model.inspect(text).edit({"block.1.input": single})
                row = batch.row(number)
                assert torch.allclose(row.logits, alone.logits, atol=1e-5)
                assert torch.allclose(row["block.1.output"], alone["block.1.output"], atol=1e-5)
                assert row.verify() <= 1e-5


@pytest.mark.parametrize("site", ["block.1.hidden", "block.1.head.0.weights", "block.1.normed.scale"])
def test_row_keeps_its_slice_of_a_batch_tensor(model, site):
    texts = ["ab cd", "abc defg hij"]
    batch = model.inspect(texts, padding="left")
    edited = batch.edit({site: 1.1 * batch[site]})
    for number, text in enumerate(texts):
        alone = model.inspect(text).edit({site: lambda x: 1.1 * x})
        assert torch.allclose(edited.row(number).logits, alone.logits, atol=1e-4)
        assert torch.allclose(edited.row(number)[site], alone[site], atol=1e-5)


EDITED = [
    "block.1.input",
    "block.1.normed",
    "block.1.normed.scale",
    "block.1.head.1.query_raw",
    "block.1.head.1.key_raw",
    "block.1.head.1.query",
    "block.1.kv_head.1.key",
    "block.0.head.1.output",
]


@pytest.mark.parametrize("site", EDITED)
def test_score_attribution_sums_to_the_score_with_edits_in_its_block(trace, site):
    edited = trace.edit({site: lambda x: 0.5 * x + 0.1})
    attribution = edited.block[1].head[1].why(3, 1)
    score = edited["block.1.head.1.scores"][3, 1].item()
    assert attribution.total == pytest.approx(score, abs=1e-5 * attribution.values.abs().sum().item())
    assert "edits" in attribution.names


@pytest.mark.parametrize("site", ["final", "final.scale", "logits", "block.1.output"])
def test_attribution_and_lens_with_edits_after_the_blocks(trace, site):
    edited = trace.edit({site: lambda x: 0.5 * x + 0.1})
    attribution = edited.attribute(7)
    logit = edited.logits[-1, 7].item()
    assert attribution.total == pytest.approx(logit, abs=1e-5 * attribution.values.abs().sum().item())
    assert torch.allclose(edited.lens()[1], edited.logits, atol=1e-5)


def test_tensor_with_gradient_gives_a_differentiable_trace(trace):
    start = trace["embedding"].clone().requires_grad_()
    edited = trace.edit({"embedding": start})
    edited.logits[-1, 5].backward()
    assert start.grad.abs().sum() > 0


def test_edits_of_future_positions(model):
    """Each edit applies once the text reaches its position."""
    edit = {X: Edit(0, at=[4])}
    text = model.generate("ab", tokens=6, temperature=0, edit=edit)
    ids = model.tokenizer.encode("ab")
    for _ in range(6):
        trace = model.inspect(ids)
        ids.append(int((trace.edit(edit) if len(ids) > 4 else trace).logits[-1].argmax()))
    assert text == model.tokenizer.decode(ids[2:])
    fixed = model.inspect("ab")[X] + 1
    assert model.generate("ab", tokens=6, temperature=0, edit={X: fixed}) == model.generate(
        "ab", tokens=6, temperature=0, edit={X: Edit(fixed, at=[0, 1])}
    )


def test_trace_ends_at_the_stop_sequence(model):
    whole = model.generate("ab", tokens=12, seed=3)
    text, trace = model.generate("ab", tokens=12, seed=3, stop=whole[4], inspect=True)
    assert text == whole[: whole.index(whole[4])]
    assert torch.allclose(trace.logits, model.inspect(trace.ids[0]).logits, atol=1e-5)
    assert model.tokenizer.decode(trace.ids[0].tolist()) == "ab" + text
