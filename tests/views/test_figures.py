import pytest
import torch

from clearhead.errors import UserError
from clearhead.labs.heads import heads
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer
from clearhead.views.figures import MOST_LABELS, figure


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = preset("modern", n_vocab=257, n_context=300, n_block=2, n_head=2, d_model=16)
    return LanguageModel(Transformer(config), Tokenizer.train("byte", []))


SITES = [
    "block.0.head.1.weights",
    "block.1.head.0.masked",
    "block.1.hidden",
    "block.0.normed.scale",
    "lens",
    None,
]


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize(("ending", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_every_kind_of_figure_in_every_format(model, tmp_path, site, ending, begins):
    path = tmp_path / f"figure.{ending}"
    figure(model.inspect("a b $x$ é"), site).save(path)
    assert path.read_bytes().startswith(begins)


def test_a_heat_map_draws_the_numbers_and_names_the_tokens(model):
    trace = model.inspect("ab c")
    drawn = figure(trace, "block.0.head.1.weights")
    axes = drawn.canvas.axes[0]
    assert torch.allclose(torch.tensor(axes.images[0].get_array().data), trace["block.0.head.1.weights"])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "␣", "c"]
    assert "block.0.head.1.weights" in drawn._repr_svg_()


def test_the_same_figure_is_the_same_file(model):
    trace = model.inspect("ab c")
    assert figure(trace, "lens")._repr_svg_() == figure(trace, "lens")._repr_svg_()


def test_a_long_text_keeps_readable_labels(model, tmp_path):
    trace = model.inspect("x" * 300)
    axes = figure(trace, "block.0.head.0.weights").canvas.axes[0]
    assert len(axes.get_yticklabels()) <= MOST_LABELS
    figure(trace).save(tmp_path / "all.png")


def test_the_lens_shows_the_likeliest_words(model):
    trace = model.inspect("ab")
    texts = {text.get_text() for text in figure(trace, "lens").canvas.axes[0].texts}
    assert any(trace.lens().words(position=1)[1][0][0] in text for text in texts)


def test_heads_as_bars(model):
    scores = heads(model)
    panels = figure(scores).canvas.axes
    assert [axes.get_ylabel() for axes in panels] == [
        "previous",
        "first",
        "repeated",
        "induction",
        "antecedent",
    ]
    drawn = [bar.get_height() for bar in panels[1].patches]
    assert drawn == pytest.approx(scores.first.flatten().tolist())
    block, head, score = scores.best("first")
    assert f"{block}.{head}: {score:.2f}" in [text.get_text() for text in panels[1].texts]


def test_parts_of_a_sum_as_bars(model):
    trace = model.inspect("ab c")
    logit, score = trace.attribute("c"), trace.block[1].head[0].why(2, 1)
    axes = figure(logit).canvas.axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([value for _, value in logit.top(24)])
    assert [label.get_text() for label in axes.get_yticklabels()] == [name for name, _ in logit.top(24)]
    axes = figure(score).canvas.axes[0]
    assert axes.get_yticklabels()[0].get_text() == " → ".join(score.top(1)[0][:2])


def test_a_sweep_as_a_table(model):
    trace = model.inspect("ab c!")
    by_head = trace.sweep("head", lambda each: each.logits[-1, 99])
    by_place = trace.sweep("block × position", lambda each: each.logits[-1, 99])
    axes = figure(trace, by_head).canvas.axes[0]
    assert torch.allclose(torch.tensor(axes.images[0].get_array().data), by_head)
    assert axes.get_xlabel() == "head"
    assert [label.get_text() for label in figure(trace, by_place).canvas.axes[0].get_xticklabels()][2] == "␣"
    with pytest.raises(UserError, match=r"the table is 3×3, expected 2×2 \(heads\) or 2×5"):
        figure(trace, torch.zeros(3, 3))


def test_what_cannot_be_drawn(model, tmp_path):
    trace = model.inspect("ab")
    with pytest.raises(UserError, match="expected one of svg, png, pdf"):
        figure(trace, "logits").save(tmp_path / "a.gif")
    with pytest.raises(UserError, match="blocks 0 to 1"):
        figure(trace, "block.5.input")
    with pytest.raises(UserError, match="was not saved"):
        figure(trace, "logits").save(tmp_path / "nowhere" / "a.svg")
