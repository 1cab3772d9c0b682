"""A lesson: losses, gradients with respect to every site and weight, and the parts of each token."""

import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import clearhead as ch
from clearhead.errors import UserError
from clearhead.inspect.weights import weight, weight_names
from clearhead.lessons.gradients import find_parameter
from clearhead.lessons.recorder import mirror
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.lora import LoRALinear, adapt
from tests.inspect.conftest import find_norm
from tests.lessons.conftest import TEXT, make_model


def near(actual, expected, most=1e-5):
    assert actual.shape == expected.shape
    return (actual - expected).norm() <= most * expected.norm().clamp(min=1e-6)


def loss_of(model, ids):
    logits = model.network(ids[None])[0]
    return F.cross_entropy(logits[:-1], ids[1:])


def make_frozen():
    model = make_model("modern")
    model.network.requires_grad_(False)
    return model


def test_loss_and_losses_are_those_of_the_text(model):
    lesson = ch.learn(model, TEXT)
    logits, ids = model.logits(TEXT), lesson.ids[0]
    expected = F.cross_entropy(logits[:-1], ids[1:], reduction="none")
    torch.testing.assert_close(lesson.losses[:-1].double(), expected, atol=1e-6, rtol=1e-5)
    assert lesson.losses[-1].isnan()
    assert lesson.loss == pytest.approx(expected.mean().item(), rel=1e-6)
    assert lesson.texts[0] == list(TEXT)
    assert lesson.target_texts[0] == [*TEXT[1:], None]


def test_gradients_equal_those_of_a_trace_at_every_site(model):
    lesson, trace = ch.learn(model, TEXT), model.inspect(TEXT)
    for site in trace.sites():
        assert near(lesson.gradient[site], trace.gradient(site, of="loss")), site
    assert near(lesson.value("block.1.head.2.weights"), trace["block.1.head.2.weights"])


def test_gradients_equal_autograd_at_every_site(model):
    """Check one block, one of its heads, and the sites outside the blocks; the others are computed along with these."""
    lesson, trace = ch.learn(model, TEXT), model.inspect(TEXT)
    sites = [site for site in trace.sites() if not re.search(r"block\.1|head\.[123]", site)]
    for site in sites:
        if site == "probabilities":
            continue
        leaf = trace[site].clone().requires_grad_()
        loss = F.cross_entropy(trace.edit({site: leaf}).logits[:-1], trace.ids[0, 1:])
        assert near(lesson.gradient[site], torch.autograd.grad(loss, leaf)[0]), site


def test_gradients_of_the_logits_are_p_minus_y(model):
    lesson = ch.learn(model, TEXT)
    y = F.one_hot(lesson.ids[0, 1:], model.config.n_vocab)
    p = lesson.value("probabilities")[:-1]
    torch.testing.assert_close(lesson.gradient["logits"][:-1], (p - y) / (len(TEXT) - 1))
    assert not lesson.gradient["logits"][-1].any()
    targets = lesson.gradient["probabilities"][:-1].gather(1, lesson.ids[0, 1:, None])
    torch.testing.assert_close(targets, -1 / (len(TEXT) - 1) / p.gather(1, lesson.ids[0, 1:, None]))


def test_gradients_of_every_weight_equal_autograd(model):
    lesson = ch.learn(model, TEXT)
    loss = loss_of(model, lesson.ids[0])
    parameters = dict(model.network.named_parameters())
    found = dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))
    twin = make_model("lecture")
    twin.network = type(model.network)(model.config).double()
    twin.network.load_state_dict(found, strict=False)
    for name in weight_names(model.config):
        if name.endswith(("QK", "OV")):
            continue
        actual = lesson.gradient[name]
        assert near(actual, twin.weight(name)), name
        # The sum over positions, which is used for frozen weights, gives the same.
        rows = model.config.n_context if name == "position.W" else model.config.n_vocab
        if name != "unembedding.W":
            assert near(sum(use.total(rows) for use in lesson.gradient.uses.of(name)), actual), name


def test_gradients_of_products(model):
    lesson, config, head = ch.learn(model, TEXT), model.config, "block.1.head.3."
    # W_O reads only the mixed values; without their bias, its gradient is that of OV, chained with W_V.
    if not config.qkv_bias:
        chained = model.weight(head + "W_V").T @ lesson.gradient[head + "OV"]
        assert near(chained, lesson.gradient[head + "W_O"])
    else:
        assert lesson.gradient[head + "OV"].shape == model.weight(head + "OV").shape
    if config.position == "rotary" or config.qk_norm:
        assert head + "QK" not in lesson.gradient
        with pytest.raises(UserError, match="rotated or normalized"):
            lesson.gradient[head + "QK"]
    else:
        assert lesson.gradient[head + "QK"].shape == model.weight(head + "QK").shape


def test_gradient_of_the_scores_product_without_biases():
    model = make_model("gpt2", qkv_bias=False)
    lesson, head = ch.learn(model, TEXT), "block.0.head.1."
    assert near(lesson.gradient[head + "QK"] @ model.weight(head + "W_K"), lesson.gradient[head + "W_Q"])


def test_central_differences_of_a_sample_of_weights(model):
    lesson, random, h = ch.learn(model, TEXT), np.random.default_rng(0), 1e-5
    names = [name for name in weight_names(model.config) if not name.endswith(("QK", "OV"))]
    for name in random.choice(names, 12, replace=False):
        value, gradient = model.weight(name), lesson.gradient[name]
        place = tuple(int(random.integers(size)) for size in value.shape)
        losses = []
        for sign in (1, -1):
            value[place] += sign * h
            losses.append(loss_of(model, lesson.ids[0]).item())
            value[place] -= sign * h
        assert (losses[0] - losses[1]) / (2 * h) == pytest.approx(gradient[place].item(), abs=1e-6), name


@settings(max_examples=12)
@given(data=st.data(), text=st.text("abcdefg", min_size=2, max_size=12))
def test_parts_of_the_tokens_sum_to_the_gradient(data, text):
    lesson = ch.learn(MODEL, text)
    names = [name for name in weight_names(MODEL.config) if name in lesson.gradient]
    name = data.draw(st.sampled_from(names))
    gradient = lesson.gradient[name]
    place = [data.draw(st.integers(0, size - 1)) for size in gradient.shape]
    parts = lesson.tokens(name, *place)
    most = 1e-9 * max(1e-3, parts.values.abs().sum().item())  # the model computes in float64
    assert abs(parts.total - gradient[tuple(place)].item()) <= most
    if not name.endswith(("QK", "OV")):
        column = {"column": place[1]} if len(place) > 1 else {}
        by_target = lesson.tokens(name, place[0], **column, by="target")
        assert abs(by_target.total - parts.total) <= most
        assert by_target.values[0, -1] == 0  # the last token has no target
    assert sum(part.value for part in parts.top(2)) + parts.others(2) == pytest.approx(parts.total, abs=most)
    best = parts.top(1)[0]
    assert best.token == text[best.position]
    assert abs(best.value) == parts.values.abs().max()


MODEL = make_model("shared keys, gpt2")


@pytest.mark.parametrize("by", ["position", "target"])
def test_parts_in_float32_are_exact_relative_to_the_whole_gradient(by):
    """Not relative to their own sum: the exact gradient of a key bias is 0, and what remains is rounding."""
    model = ch.load("stories", device="cpu")
    lesson = ch.learn(model, "Once upon a time there was a fox.")
    for name, *place in (
        ("block.3.head.0.b_K", 5),
        ("block.0.head.1.W_Q", 3, 1),
        ("block.3.W_2", 7, 2),
        ("embedding.W", 40, 9),
        ("final.gain", 3),
        ("block.1.normed.shift", 8),
    ):
        error = lesson.tokens(name, *place, by=by).total - lesson.gradient[name][tuple(place)].item()
        assert abs(error) <= 1e-6 * lesson.gradient_norm, name


def test_tokens_of_an_embedding_are_its_occurrences():
    model = make_model("gpt2", tied=False)
    lesson, a = ch.learn(model, TEXT), model.tokenizer.encode("a")[0]
    values = lesson.tokens("embedding.W", a, 3).values[0]
    assert [i for i, letter in enumerate(TEXT) if letter == "a"] == values.nonzero()[:, 0].tolist()


def test_parts_by_target_are_the_gradients_of_single_losses(model):
    lesson = ch.learn(model, TEXT)
    for name, place in (
        ("block.0.head.1.W_K", (2, 3)),
        ("block.1.W_1", (1, 0)),
        (f"block.0.{find_norm(model.config)}.gain", (4,)),
    ):
        found = lesson.tokens(name, place[0], *place[1:], by="target").values[0]
        for t in (0, 5):
            logits = model.network(lesson.ids)[0]
            loss = F.cross_entropy(logits[t], lesson.ids[0, t + 1]) / (len(TEXT) - 1)
            (expected,) = torch.autograd.grad(loss, find_parameter(model.network, name))
            twin = mirror(model.network, {find_parameter(model.network, name): expected})
            assert found[t].item() == pytest.approx(weight(twin, name)[place].item(), abs=1e-6)


def test_several_texts_are_one_batch(model):
    lesson = ch.learn(model, ["abc", "abdaab"])
    alone = [ch.learn(model, text) for text in ("abc", "abdaab")]
    assert lesson.loss == pytest.approx((2 * alone[0].loss + 5 * alone[1].loss) / 7)
    torch.testing.assert_close(
        lesson.gradient["block.0.hidden"][0, :3], alone[0].gradient["block.0.hidden"] * 2 / 7
    )
    both = (2 * alone[0].gradient["block.1.W_2"] + 5 * alone[1].gradient["block.1.W_2"]) / 7
    torch.testing.assert_close(lesson.gradient["block.1.W_2"], both)
    assert "2 texts of 6 tokens" in repr(lesson)


def test_a_bidirectional_model_learns_masked_tokens():
    model = make_model("bidirectional")
    with pytest.raises(UserError, match="no mask token"):
        ch.learn(model, TEXT)
    model.tokenizer = Tokenizer.train("char", ["abcdef"], mask=True)
    lesson = ch.learn(model, [TEXT, "abcdef"], seed=3)
    counted = ~lesson.losses.isnan()
    assert counted.sum(1).tolist() == [1, 1]  # 15% of each text
    assert lesson.losses[counted].mean() == pytest.approx(lesson.loss, rel=1e-6)
    alone = ch.learn(model, TEXT, seed=3)  # padding is not seen
    torch.testing.assert_close(lesson.gradient["block.0.normed"][0], alone.gradient["block.0.normed"] / 2)


def test_frozen_weights_have_gradients_but_no_update(model):
    expected = ch.learn(model, TEXT)
    model.network.requires_grad_(False)
    model.network.blocks[1].feedforward.second.weight.requires_grad_(True)
    lesson = ch.learn(model, TEXT)
    for name in (
        "embedding.W",
        "block.0.head.1.W_K",
        "block.1.W_2",
        f"block.0.{find_norm(model.config)}.gain",
        "block.1.W_1",
        "final",
    ):
        assert near(lesson.gradient[name], expected.gradient[name]), name
    assert not lesson.update("block.0.W_1").change.any()
    assert lesson.update("block.1.W_2").change.any()


def test_adapters(model):
    expected = ch.learn(model, TEXT)
    adapt(model.network, 2)
    for layer in model.network.modules():
        if isinstance(layer, LoRALinear):
            layer.B.data.normal_(std=1e-3)
    lesson = ch.learn(model, TEXT)
    for name in ("block.0.head.1.W_K", "block.1.W_2", "block.0.W_1", "embedding.W", "block.1.head.0.weights"):
        assert near(lesson.gradient[name], expected.gradient[name], 0.1), name
    after = lesson.apply()
    for name in ("block.0.head.1.W_K", "block.1.W_2"):
        update = lesson.update(name)
        assert {"adapter_A", "adapter_B"} < update.terms.keys()
        assert torch.equal(update.after, after.weight(name))
        torch.testing.assert_close(sum(update.terms.values()), update.change)
        assert update.terms["rounding"].abs().max() <= 1e-12
        for matrix in update.adapters.values():
            assert list(matrix.terms)[:2] == ["gradient", "clipping"]
            assert matrix.change.any()
            torch.testing.assert_close(sum(matrix.terms.values()), matrix.change)
            assert matrix.terms["rounding"].abs().max() <= 1e-6 * matrix.change.abs().max() + 1e-9
    product = [update.adapters[key].after.double() for key in ("B", "A")]
    rest = update.after.double().T - 2.0 * product[0] @ product[1]
    frozen = model.network.blocks[
        1
    ].feedforward.second.frozen.double()  # the last of the two names is block.1.W_2
    torch.testing.assert_close(rest, frozen, atol=1e-6, rtol=1e-5)
    assert not lesson.update("final.gain").change.any()


def test_the_model_does_not_change(model):
    before = [parameter.detach().clone() for parameter in model.network.parameters()]
    state = torch.get_rng_state()
    lesson = ch.learn(model, TEXT)
    lesson.update("block.0.W_1")
    lesson.step(2)
    assert all(map(torch.equal, before, model.network.parameters()))
    assert all(parameter.grad is None for parameter in model.network.parameters())
    assert not model.network.training
    assert torch.equal(state, torch.get_rng_state())


def test_steps_on_one_text_lower_its_loss(model):
    lesson = ch.learn(model, TEXT, optimizer="adamw", learning_rate=0.003)
    later = lesson.step(5)
    assert later.loss < lesson.loss
    assert (lesson.number, later.number) == (1, 6)
    assert lesson.step().loss == pytest.approx(ch.learn(lesson.apply(), TEXT).loss, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ch.learn("model", TEXT), "'model' is not a model"),
        (lambda: ch.learn(MODEL, "a"), "a text of one token has no next token"),
        (lambda: ch.learn(MODEL, "a" * 13), "13 tokens exceed the context of 12"),
        (lambda: ch.learn(MODEL, TEXT, optimizer="sgd"), "optimizer = 'sgd': expected one of muon, adamw"),
        (
            lambda: ch.learn(MODEL, TEXT).gradient["block.0.head.0.W_X"],
            "neither a site nor a weight; did you mean",
        ),
        (lambda: ch.learn(MODEL, TEXT).gradient["nothing"], "site 'nothing' does not exist"),
        (lambda: ch.learn(MODEL, TEXT).update("block.0.W_9"), "weight 'block.0.W_9' does not exist"),
        (
            lambda: ch.learn(MODEL, TEXT).update("block.0.head.0.QK"),
            "the product of two weights and has no update of its own: ask for block.0.head.0.W_Q or block.0.head.0.W_K",
        ),
        (
            lambda: ch.learn(MODEL, TEXT).value("block.0.head.0.QK"),
            r"is a weight, not a site: its value is lesson.model.weight\('block.0.head.0.QK'\)",
        ),
        (lambda: ch.learn(MODEL, TEXT).tokens("block.0.W_1", 0), "expected a row and a column"),
        (lambda: ch.learn(MODEL, TEXT).tokens("block.0.b_1", 0, 1), "expected one index"),
        (lambda: ch.learn(MODEL, TEXT).tokens("block.0.W_1", 0, 999), "column 999 does not exist"),
        (
            lambda: ch.learn(MODEL, TEXT).tokens("block.0.b_1", 0, by="loss"),
            "by = 'loss': expected position or target",
        ),
        (lambda: ch.learn(make_frozen(), TEXT), r"all weights are frozen, .*: call requires_grad_\(\)"),
        (lambda: ch.learn(MODEL, TEXT).step(0), "count = 0: expected an integer of at least 1"),
        (lambda: ch.learn(MODEL, TEXT).update("block.0.W_1").at(999, 0), "does not name one of its numbers"),
    ],
)
def test_bad_input_gets_one_clear_line(call, message):
    with pytest.raises(UserError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [{"weight_decay": value} for value in ("x", -1, float("nan"))]
    + [{"learning_rate": value} for value in ("a", True, 0, float("inf"))],
)
def test_rate_and_decay_are_checked(settings):
    with pytest.raises(UserError, match="expected a finite number"):
        ch.learn(make_model("lecture"), TEXT, **settings)
