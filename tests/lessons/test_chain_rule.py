"""The chain rule: the terms of every number sum to the gradient that autograd computes."""

import math
import random

import pytest

import clearhead as ch
from clearhead.errors import UserError
from clearhead.inspect.sites import all_sites, site_shape
from clearhead.inspect.weights import weight_names
from tests.lessons.conftest import TEXT, make_model


def numbers(site, shape, count=3):
    choose = random.Random(site)
    return [tuple(choose.randrange(size) for size in shape) for _ in range(count)]


def test_the_terms_of_every_site_sum_to_its_gradient(model):
    lesson = ch.learn(model, TEXT)
    for site in map(str, all_sites(model.config)):
        if site in ("logits", "probabilities"):
            continue
        gradient = lesson.gradient[site]
        largest = gradient.abs().max().item()
        for index in numbers(site, gradient.shape):
            chain = lesson.chain(site, *index)
            assert chain.gradient == gradient[index].item()
            total = math.fsum(term.value for term in chain.terms)
            assert total == pytest.approx(chain.gradient, rel=1e-6, abs=1e-6 * largest), (site, index)
            assert chain.value == lesson.value(site)[index].item()


def test_the_terms_of_every_weight_sum_to_its_gradient(model):
    lesson = ch.learn(model, TEXT)
    for name in weight_names(model.config):
        if name.endswith(("QK", "OV")):
            continue
        gradient = lesson.gradient[name]
        for index in numbers(name, gradient.shape, 2):
            chain = lesson.chain(name, *index)
            total = math.fsum(term.value for term in chain.terms)
            scale = gradient.abs().max().item()
            tolerance = (
                1e-6 * scale + 1e-12
            )  # the bias of the keys has no effect: its gradient is only rounding error
            assert total == pytest.approx(gradient[index].item(), rel=1e-6, abs=tolerance), (name, index)
            assert (chain.kind, chain.value) == ("weight", model.weight(name)[index].item())


def test_a_term_is_a_gradient_times_a_derivative(model):
    lesson = ch.learn(model, TEXT)
    for site in map(str, all_sites(model.config)):
        shape = site_shape(site, model.config, len(TEXT))
        for term in lesson.chain(site, *numbers(site, shape, 1)[0]).terms[:3]:
            assert term.gradient == pytest.approx(lesson.gradient[term.name][term.at].item())
            assert term.value == pytest.approx(term.gradient * term.derivative)
            if term.factor is not None:
                name, index = term.factor
                whole = lesson.value(name) if "W" not in name else model.weight(name)
                assert term.derivative == pytest.approx(whole[index].item())


def test_the_loss_uses_the_logits():
    lesson = ch.learn(make_model("gpt2"), TEXT)
    chain = lesson.chain("logits", 2, 1)
    assert (chain.kind, chain.terms) == ("loss", [])
    probability, target = lesson.value("probabilities")[2, 1].item(), lesson.target_ids[0, 2].item()
    assert chain.gradient == pytest.approx((probability - (target == 1)) / (len(TEXT) - 1))


def test_a_text_of_a_batch():
    model = make_model("modern")
    lesson = ch.learn(model, [TEXT, "gfedc"])
    chain = lesson.chain("block.0.head.1.query_raw", 2, 1, text=1)
    assert chain.gradient == lesson.gradient["block.0.head.1.query_raw"][1, 2, 1].item()
    assert math.fsum(term.value for term in chain.terms) == pytest.approx(chain.gradient, rel=1e-6)


def test_a_weight_is_also_used_by_the_other_texts_of_a_batch():
    lesson = ch.learn(make_model("modern"), [TEXT, "gfedc"])
    for name, index in (("block.0.W_1", (2, 3)), ("block.1.normed.gain", (4,)), ("embedding.W", (1, 2))):
        both = [lesson.chain(name, *index, *([None] * (2 - len(index))), text=text) for text in (0, 1)]
        own = [math.fsum(term.value for term in chain.terms) for chain in both]
        gradient = lesson.gradient[name][index].item()
        assert sum(own) == pytest.approx(gradient, rel=1e-5), name
        for chain, rest in zip(both, reversed(own), strict=True):
            assert chain.others == pytest.approx(rest, rel=1e-5, abs=1e-9), name
            assert chain.n_others == 1
            assert "from 1 other text" in repr(chain)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("block.0.input", 0), "block.0.input is 9×24: expected a row and a column"),
        (("final.scale", 0, 0), "final.scale is 9: expected one index"),
        (("block.0.input", 9, 0), "row"),
        (("block.0.inputs", 0, 0), "block.0.inputs"),
        (("block.0.input", 0, 0, 1), "text"),
        (
            ("block.0.head.0.OV", 0, 0),
            "two weights .*: ask for block.0.head.0.W_V or block.0.head.0.W_O",
        ),
    ],
)
def test_invalid_arguments_are_refused(arguments, message):
    lesson = ch.learn(make_model("modern"), TEXT)
    with pytest.raises(UserError, match=message):
        lesson.chain(*arguments)
    assert "the sum of" in repr(lesson.chain("block.0.input", 0, 0))
    assert "derivative" in lesson.chain("block.0.input", 0, 0)._repr_html_()
