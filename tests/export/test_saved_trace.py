"""What data a saved page contains."""

import re
from pathlib import Path

import numpy as np
import pytest

import clearhead
from clearhead.export.saved_trace import FLOW_CELLS, MAX_DIFFERING, keep_drawn, save_trace
from clearhead.export.saved_views import choose_views

WEB = Path(__file__).parents[2] / "web"
TEXT, OTHER = "The duck was too tired", "The duck was too happy"


def stored_names(what, views, side=0):
    """Return the names of the matrices stored for one text."""
    contents, arrays = save_trace(what, choose_views(views, what))
    described = [each for side in contents["sides"] for each in side["matrices"]]
    assert [tuple(each["shape"]) for each in described] == [array.shape for array in arrays]
    return {each["name"] for each in contents["sides"][side]["matrices"]}


def test_only_needed_matrices_are_stored(models):
    trace = models["modern"].inspect(TEXT)
    names = stored_names(trace, ["block.1.head.0"])
    head = {f"block.1.head.0.{name}" for name in ("weights", "W_Q", "W_K", "W_V", "W_O")}
    norms = {f"block.1.{name}.gain" for name in ("normed", "query_norm", "key_norm")}
    assert names == {"block.1.input", *head, *norms}


def test_keep_drawn_keeps_the_largest_value_per_cell():
    array = np.array([[1, -5, 2, 0.5, 3, 4, -7], [0, 0, 1, -1, 2, 0, 0]], np.float32)
    kept = keep_drawn(array, 3)
    assert np.isfinite(kept).sum() == 6
    # On the page, column i falls into cell ⌊i · cells / columns⌋.
    for row, rest in zip(array, kept, strict=True):
        for cell in range(3):
            stretch = [i for i in range(7) if i * 3 // 7 == cell]
            assert np.nanmax(np.abs(rest[stretch])) == np.abs(row[stretch]).max()
    assert keep_drawn(array, 7) is array


def test_flow_cells_match_the_page():
    text = (WEB / "src" / "drawing" / "flow.ts").read_text()
    drawn = {name: int(cells) for cells, name in re.findall(r'\["\w+", "\w+", (\d+), "(\w+)"\]', text)}
    assert {name: drawn[name] for name in FLOW_CELLS} == FLOW_CELLS


def test_comparison_stores_the_most_different_sites(models):
    model = models["modern"]
    compared = model.inspect(TEXT).compare(model.inspect(OTHER))
    one, other = (stored_names(compared, None, side) for side in (0, 1))
    assert one == other
    listed = [site for site, far in compared.ranking(40) if far > 0]
    assert set(listed) <= one  # for a small model, all of them fit
    assert not any(name.endswith(("W_Q", "W_K")) for name in one)
    # A selected head adds its weights once, and its sites for both texts.
    more, beside = (stored_names(compared, ["block.0.head.1"], side) for side in (0, 1))
    assert more - one >= {"block.0.head.1.W_Q", "block.0.head.1.W_O"}
    assert {"block.0.head.1.query", "block.0.head.1.output"} <= beside


def test_comparison_size_is_limited(models):
    model = models["long"]
    text = " ".join([TEXT] * 80)
    compared = model.inspect(text).compare(model.inspect(text.replace("tired", "happy")))
    assert len(compared.one) ** 2 > MAX_DIFFERING / 4
    _, arrays = save_trace(compared, choose_views(None, compared))
    assert 0 < sum(array.size for array in arrays) <= 2 * MAX_DIFFERING


def test_lens_stores_only_the_last_positions(models):
    model = models["long"]
    trace = model.inspect(" ".join([TEXT] * 40))
    assert len(trace) > 128
    contents, [shares] = save_trace(trace, choose_views(["lens"], trace))
    probabilities = trace.lens()[0][-128:].softmax(-1)
    assert shares.shape == (1, 6, 128)
    assert shares[0, 0] == pytest.approx(probabilities.max(-1).values.numpy())
    assert shares[0, 3] == pytest.approx(probabilities[:, contents["tokens"][2]].numpy())
    assert contents["lens"] == [trace.token_texts(probabilities.argmax(-1).tolist())]


def test_model_names_are_saved(models, tmp_path):
    models["modern"].save(tmp_path / "my model")
    model = clearhead.load(tmp_path / "my model")
    contents, _ = save_trace(trace := model.inspect(TEXT), choose_views(["lens"], trace))
    assert contents["sides"][0]["details"]["name"] == "my-model"
    assert contents["query"].startswith("?model=my-model&")
    contents, _ = save_trace(
        compared := trace.edit({"final": 0}).compare(models["modern"].inspect(TEXT)),
        choose_views(None, compared),
    )
    assert [each["details"]["name"] for each in contents["sides"]] == ["my-model (1 edit)", "model"]
    assert contents["edits"] == 1
