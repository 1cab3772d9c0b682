import pytest
import torch

from clearhead.errors import UserError
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


def test_what_cannot_be_drawn(model, tmp_path):
    trace = model.inspect("ab")
    with pytest.raises(UserError, match="expected one of svg, png, pdf"):
        figure(trace, "logits").save(tmp_path / "a.gif")
    with pytest.raises(UserError, match="blocks 0 to 1"):
        figure(trace, "block.5.input")
    with pytest.raises(UserError, match="was not saved"):
        figure(trace, "logits").save(tmp_path / "nowhere" / "a.svg")
