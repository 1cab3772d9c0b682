import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.figures.bars import MOST_BARS
from clearhead.figures.figure import figure
from clearhead.figures.heat_maps import MOST_CELLS
from clearhead.figures.pooling import pool
from clearhead.figures.tables import MOST_POSITIONS, MOST_TOKENS, likeliest
from clearhead.labs.heads import heads
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.picture import MOST_LABELS
from clearhead.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = preset("modern", n_vocab=257, n_context=300, n_block=2, n_head=2, d_model=16)
    return LanguageModel(Transformer(config), Tokenizer.train("byte", []))


def names(axes, side):
    return [label.get_text() for label in getattr(axes, f"get_{side}ticklabels")()]


SITES = [
    "block.0.head.1.weights",
    "block.1.head.0.masked",
    "block.1.hidden",
    "block.0.normed.scale",
    "probabilities",
    "lens",
    None,
]


FORMATS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


@pytest.mark.parametrize("number", range(len(SITES)))
def test_every_figure_can_be_saved(model, tmp_path, number):
    ending = list(FORMATS)[number % 3]
    path = tmp_path / f"figure.{ending}"
    figure(model.inspect("a b $x$ é"), SITES[number]).save(path)
    assert path.read_bytes().startswith(FORMATS[ending])


def test_heat_map_shows_values_and_token_labels(model):
    trace = model.inspect("ab c")
    drawn = figure(trace, "block.0.head.1.weights")
    axes = drawn.canvas.axes[0]
    assert torch.allclose(torch.tensor(axes.images[0].get_array().data), trace["block.0.head.1.weights"])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b", "␣", "c"]
    assert "block.0.head.1.weights" in drawn._repr_svg_()


def test_svg_output_is_deterministic(model):
    trace = model.inspect("ab c")
    assert figure(trace, "lens")._repr_svg_() == figure(trace, "lens")._repr_svg_()


def test_long_texts_keep_readable_labels(model, tmp_path):
    trace = model.inspect("x" * 300)
    axes = figure(trace, "block.0.head.0.weights").canvas.axes[0]
    assert len(axes.get_yticklabels()) <= MOST_LABELS
    figure(trace).save(tmp_path / "all.png")


def test_lens_shows_the_most_likely_tokens(model):
    trace = model.inspect("ab")
    texts = {text.get_text() for text in figure(trace, "lens").canvas.axes[0].texts}
    assert any(trace.lens().tokens(position=1)[1][0][0] in text for text in texts)


def test_head_scores_are_drawn_as_bars(model):
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


def test_contributions_are_drawn_as_bars(model, monkeypatch):
    trace = model.inspect("ab c")
    logit, score = trace.attribute("c"), trace.block[1].head[0].why(2, 1)
    axes = figure(logit).canvas.axes[0]
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([value for _, value in logit.top(24)])
    assert names(axes, "y") == [name for name, _ in logit.top(24)]
    axes = figure(score).canvas.axes[0]
    assert names(axes, "y")[0] == " → ".join(score.top(1)[0][:2])
    monkeypatch.setattr("clearhead.figures.bars.MOST_BARS", 10)
    axes, count = figure(score).canvas.axes[0], score.values.numel()
    assert len(axes.patches) == 11
    assert names(axes, "y")[-1] == f"{count - 10} others"
    assert sum(bar.get_width() for bar in axes.patches) == pytest.approx(score.total, rel=1e-4)
    assert f"the 10 largest of {count} pairs" in axes.get_title("left")


def test_sweeps_are_drawn_as_tables(model):
    trace = model.inspect("ab c!")
    by_head = trace.sweep("head", lambda each: each.logits[-1, 99])
    by_place = trace.sweep("block × position", lambda each: each.logits[-1, 99])
    axes = figure(trace, by_head).canvas.axes[0]
    assert torch.allclose(torch.tensor(axes.images[0].get_array().data), by_head.double())
    assert axes.get_xlabel() == "head"
    assert [label.get_text() for label in figure(trace, by_place).canvas.axes[0].get_xticklabels()][2] == "␣"
    with pytest.raises(UserError, match=r"the table is 3×3, expected 2×2 \(heads\) or 2×5"):
        figure(trace, torch.zeros(3, 3))


def test_invalid_figures_are_rejected(model, tmp_path):
    trace = model.inspect("ab")
    for name, message in [
        (tmp_path / "a.gif", r"ends in .gif: expected a file name that ends in .svg, .png, .pdf"),
        (tmp_path / "a", "has no suffix"),
        ("", "name of the figure is missing"),
        (3, "cannot be saved to a int"),
        (tmp_path / "nowhere" / "a.svg", r"nowhere does not exist, so the figure was not saved"),
    ]:
        with pytest.raises(UserError, match=message):
            figure(trace, "logits").save(name)
    with pytest.raises(UserError, match="blocks 0 to 1"):
        figure(trace, "block.5.input")
    with pytest.raises(UserError, match="3 is not part of a trace"):
        figure(trace, 3)
    for odd in (torch.zeros(2, 2), model, "ab", None, trace.block[0]):
        with pytest.raises(UserError, match="cannot be drawn: expected a trace"):
            figure(odd)
    with pytest.raises(UserError, match="omit 'embedding'"):
        figure(trace.attribute("c"), "embedding")
    with pytest.raises(UserError, match="`around` applies to a sweep"):
        figure(trace, "lens", around=1)
    for rows in (slice(1, 1), range(0, 5), [0]):
        with pytest.raises(UserError, match="positions 0 to 1"):
            figure(trace, "lens", rows=rows)
    with pytest.raises(UserError, match="`rows` applies to"):
        figure(trace.attribute("c"), rows=slice(0, 1))


def test_every_figure_accepts_a_title(model):
    trace = model.inspect("ab c!")
    table = trace.sweep("head", lambda each: each.logits[-1, 99])
    others = (trace.attribute("c"), trace.block[1].head[0].why(2, 1), trace.lens(), trace.compare(trace))
    for asked in [(trace, site) for site in (*SITES[:-1], table)] + [(each, None) for each in others]:
        assert figure(*asked, title="Costs $5").canvas.axes[0].get_title("left").startswith(r"Costs \$5")
    for each in (trace, heads(model)):
        assert figure(each, title="mine").canvas.get_suptitle().startswith("mine\n")


def test_result_title_becomes_the_figure_title(model):
    logit = model.inspect("ab c").attribute("c")
    object.__setattr__(logit, "title", "the logit of 'c' after position 3")
    title = figure(logit).canvas.axes[0].get_title("left")
    assert title.startswith("the logit of 'c' after position 3\n")
    assert f"total {logit.total:.2f}" in title


def test_lens_title_names_the_positions_shown(model):
    trace = model.inspect("x" * 40)
    drawn = figure(trace.lens()).canvas
    assert drawn.axes[0].images[0].get_array().shape == (2, MOST_POSITIONS)
    assert f"the last {MOST_POSITIONS} of 40 positions" in drawn.axes[0].get_title("left")
    assert drawn.axes[1].get_ylabel() == "probability"
    some = figure(trace, "lens", rows=slice(3, 8)).canvas.axes[0]
    assert some.images[0].get_array().shape == (2, 5)
    assert "positions 3 to 7 of 40" in some.get_title("left")


def test_probabilities_include_the_most_likely_token_of_every_position(model):
    trace = model.inspect("ab c!")
    axes = figure(trace, "probabilities").canvas.axes[0]
    drawn = torch.tensor(axes.images[0].get_array().data)
    assert drawn.max(-1).values == pytest.approx(trace["probabilities"].max(-1).values)
    assert drawn.shape[1] == len(names(axes, "x")) <= MOST_TOKENS
    assert f"the {drawn.shape[1]} most likely of 257 tokens" in axes.get_title("left")
    values = torch.tensor([[0.0, 5.0, 1.0], [4.0, 0.0, 3.0]])
    assert likeliest(values) == [1, 0, 2]


def test_one_number_per_position_is_drawn_as_bars(model):
    trace = model.inspect("ab c")
    axes = figure(trace, "block.0.normed.scale").canvas.axes[0]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(trace["block.0.normed.scale"].tolist())
    assert names(axes, "x") == ["a", "b", "␣", "c"]
    long = model.inspect("ab" * 140)
    (outline,) = figure(long, "final.scale").canvas.axes[0].patches
    assert outline.get_data().values == pytest.approx(long["final.scale"].tolist())


def test_pooling_a_long_text_preserves_total_weight(model, monkeypatch):
    monkeypatch.setattr("clearhead.figures.pooling.MOST_NUMBERS", 3000)  # forces reading in chunks
    trace = model.inspect("The cat sat. " * 21)
    T = trace.ids.shape[1]
    assert T > MOST_CELLS
    axes = figure(trace, "block.1.head.0.weights").canvas.axes[0]
    cells = torch.tensor(axes.images[0].get_array().data)
    weights = trace["block.1.head.0.weights"]
    assert cells.shape == (137, 137)
    assert cells.sum(-1).tolist() == pytest.approx([1] * 137, abs=1e-4)
    assert cells[7, 3].item() == pytest.approx(weights[14:16, 6:8].sum().item() / 2, rel=1e-4)
    assert "mean fraction of attention from 2 tokens to 2 tokens" in axes.get_title("left")
    axes = figure(trace, "block.1.head.0.masked").canvas.axes[0]
    cells, masked = axes.images[0].get_array(), trace["block.1.head.0.masked"]
    assert cells[7, 7] == pytest.approx(np.mean([masked[14, 14], masked[15, 14], masked[15, 15]]), rel=1e-4)
    assert np.ma.is_masked(cells[7, 8])
    assert names(axes, "y")[1] == "6 t"


def test_pooling_ignores_non_finite_values():
    value = np.array([[1.0, 3.0, -np.inf], [5.0, -np.inf, -np.inf], [2.0, 4.0, 9.0]])
    assert pool(value, 2, 2) == pytest.approx(np.array([[3.0, np.nan], [3.0, 9.0]]), nan_ok=True)


def test_thumbnails_are_read_a_few_rows_at_a_time(model, monkeypatch):
    """A long text never needs all of its weights at once."""
    trace = model.inspect("x" * 300)
    monkeypatch.setattr("clearhead.figures.pooling.MOST_NUMBERS", 300 * 30)
    asked, read = [], trace.read
    monkeypatch.setattr(
        trace, "read", lambda site, rows=None, columns=None: asked.append(rows) or read(site, rows, columns)
    )
    figure(trace)
    assert max(rows.stop - rows.start for rows in asked) <= 30


def test_thumbnails_label_tokens_and_distinguish_small_weights(model):
    drawn = figure(model.inspect("ab c " * 20)).canvas
    left, right, below = drawn.axes[0], drawn.axes[1], drawn.axes[3]
    assert names(left, "y")[0] == "0 a"
    assert names(right, "y") == []
    assert names(below, "x")[0] == "0 a"
    small = right.images[0].norm(1 / 100)
    assert small > 0.2
    assert "its own scale" in drawn.get_suptitle()


def test_selected_rows_keep_all_columns_they_attend_to(model):
    trace = model.inspect("ab c de f")
    axes = figure(trace, "block.0.head.1.weights", rows=slice(2, 5)).canvas.axes[0]
    expected = trace["block.0.head.1.weights"][2:5, :5]
    assert torch.allclose(torch.tensor(axes.images[0].get_array().data), expected)
    assert "positions 2 to 4 of 9" in axes.get_title("left")


def test_single_head_score_has_its_own_scale(model):
    scores = heads(model)
    (axes,) = figure(scores, "induction").canvas.axes
    assert axes.get_ylabel() == "induction"
    assert axes.get_ylim()[1] < 2 * max(scores.induction.max().item(), scores.chance["induction"])
    (dashed,) = axes.lines
    assert dashed.get_ydata()[0] == pytest.approx(scores.chance["induction"])
    with pytest.raises(UserError, match="unknown score 'copying': expected one of previous, first"):
        figure(scores, "copying")


def test_comparisons_are_drawn_as_bars(model):
    comparison = model.inspect("ab c").compare(model.inspect("ab d"))
    axes = figure(comparison).canvas.axes[0]
    ranking = comparison.ranking(MOST_BARS)
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([value for _, value in ranking])
    assert names(axes, "y") == [site for site, _ in ranking]


def test_sweep_colors_are_centered_on_the_unedited_value(model):
    trace = model.inspect("ab c!")
    table = np.array([[1.0, 2.0], [3.0, 10.0]])
    for asked, center in ((None, 2.5), (3.0, 3.0)):
        image = figure(trace, table, around=asked).canvas.axes[0].images[0]
        assert image.norm(center) == pytest.approx(0.5)
        assert image.norm.vmax == pytest.approx(10.0)
    axes = figure(trace, table.tolist(), around=3.0).canvas.axes[0]
    assert "white: unedited, 3" in axes.get_title("left")
    assert axes.get_xticklabels()[0].get_rotation() == 0
    with pytest.raises(UserError, match="no finite number"):
        figure(trace, table * np.nan)
    with pytest.raises(UserError, match="not numeric"):
        figure(trace, [["a", "b"], ["c", "d"]])
