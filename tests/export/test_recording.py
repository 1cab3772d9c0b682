"""What is kept in a saved file, and what is not."""

import re
from pathlib import Path

import numpy as np
import pytest

import clearhead
from clearhead.export.recording import ROOM, STRIPES, record, thin
from clearhead.export.saved_views import choose_views

WEB = Path(__file__).parents[2] / "web"
TEXT, OTHER = "The duck was too tired", "The duck was too happy"


def kept_of(what, views, side=0):
    """The names of the numbers of one text."""
    contents, arrays = record(what, choose_views(views, what))
    described = [each for told in contents["sides"] for each in told["matrices"]]
    assert [tuple(each["shape"]) for each in described] == [array.shape for array in arrays]
    return {each["name"] for each in contents["sides"][side]["matrices"]}


def test_only_what_is_asked_for_is_kept(models):
    trace = models["modern"].inspect(TEXT)
    names = kept_of(trace, ["block.1.head.0"])
    head = {f"block.1.head.0.{name}" for name in ("weights", "W_Q", "W_K", "W_V", "W_O")}
    norms = {f"block.1.{name}.gain" for name in ("normed", "query_norm", "key_norm")}
    assert names == {"block.1.input", *head, *norms}


def test_of_a_stripe_the_largest_are_kept():
    array = np.array([[1, -5, 2, 0.5, 3, 4, -7], [0, 0, 1, -1, 2, 0, 0]], np.float32)
    kept = thin(array, 3)
    assert np.isfinite(kept).sum() == 6
    # As the page cuts it: a number belongs to the cell ⌊i · cells / columns⌋.
    for row, left in zip(array, kept, strict=True):
        for cell in range(3):
            stretch = [i for i in range(7) if i * 3 // 7 == cell]
            assert np.nanmax(np.abs(left[stretch])) == np.abs(row[stretch]).max()
    assert thin(array, 7) is array


def test_stripes_are_those_of_the_page():
    text = (WEB / "src" / "drawing" / "flow.ts").read_text()
    drawn = {name: int(cells) for cells, name in re.findall(r'\["\w+", "\w+", (\d+), "(\w+)"\]', text)}
    assert {name: drawn[name] for name in STRIPES} == STRIPES


def test_of_two_texts_both_sides_are_kept_where_they_differ_most(models):
    model = models["modern"]
    compared = model.inspect(TEXT).compare(model.inspect(OTHER))
    one, other = (kept_of(compared, None, side) for side in (0, 1))
    assert one == other
    listed = [site for site, far in compared.ranking(40) if far > 0]
    assert set(listed) <= one  # of so small a model there is room for all of them
    assert not any(name.endswith(("W_Q", "W_K")) for name in one)
    # With a head that was named, its weights come too, once, and its own sites in both.
    more, beside = (kept_of(compared, ["block.0.head.1"], side) for side in (0, 1))
    assert more - one >= {"block.0.head.1.W_Q", "block.0.head.1.W_O"}
    assert {"block.0.head.1.query", "block.0.head.1.output"} <= beside


def test_there_is_an_end_to_it(models):
    model = models["long"]
    text = " ".join([TEXT] * 80)
    compared = model.inspect(text).compare(model.inspect(text.replace("tired", "happy")))
    assert len(compared.one) ** 2 > ROOM / 4
    _, arrays = record(compared, choose_views(None, compared))
    assert 0 < sum(array.size for array in arrays) <= 2 * ROOM


def test_the_lens_is_kept_of_the_last_positions(models):
    model = models["long"]
    trace = model.inspect(" ".join([TEXT] * 40))
    assert len(trace) > 128
    contents, [shares] = record(trace, choose_views(["lens"], trace))
    probabilities = trace.lens()[0][-128:].softmax(-1)
    assert shares.shape == (1, 6, 128)
    assert shares[0, 0] == pytest.approx(probabilities.max(-1).values.numpy())
    assert shares[0, 3] == pytest.approx(probabilities[:, contents["words"][2]].numpy())
    assert contents["lens"] == [trace.token_texts(probabilities.argmax(-1).tolist())]


def test_models_go_by_their_names(models, tmp_path):
    models["modern"].save(tmp_path / "my model")
    model = clearhead.load(tmp_path / "my model")
    contents, _ = record(trace := model.inspect(TEXT), choose_views(["lens"], trace))
    assert contents["sides"][0]["details"]["name"] == "my-model"
    assert contents["query"].startswith("?model=my-model&")
    contents, _ = record(
        compared := trace.edit({"final": 0}).compare(models["modern"].inspect(TEXT)),
        choose_views(None, compared),
    )
    assert [each["details"]["name"] for each in contents["sides"]] == ["my-model (1 change)", "model"]
    assert contents["edits"] == 1
