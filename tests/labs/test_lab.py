"""What all labs share: validated settings, and results that can be exported and plotted."""

import csv
import io
import json
import re

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.labs.catalog import LABS, find_lab
from clearhead.labs.lab import Lines, Points, Result, Setting, Table
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.runs.demo import SETTINGS, demo_texts
from clearhead.text.tokenizer import Tokenizer

RESULT = Result(
    "attention",
    {},
    {"most": 0.5, "infinite": float("inf")},
    [
        Table("numbers", ["a"], ["x", "y"], [[1.0, "word"]]),
        Table("shades", ["a", "b"], ["x"], [[-1.0], [None]], shaded=True),
        Lines("curve", "d", "loss", [1.0, 2.0], {"one": [0.5, None]}, {"one": [(0.4, 0.6), (0.1, 0.2)]}),
        Points("map", ["here", "there"], ["bank", "river"], [(0.0, 1.0), (2.0, 3.0)]),
    ],
)


@pytest.mark.parametrize(
    ("setting", "given", "words"),
    [
        (Setting("n", 3, "", 1, 5), 6, "n = 6: expected 1 to 5"),
        (Setting("n", 3, "", least=1), 0, "at least 1"),
        (Setting("n", 3, ""), True, "an integer"),
        (Setting("n", 3, ""), 3.5, "an integer"),
        (Setting("x", 1.0, ""), float("nan"), "finite"),
        (Setting("t", "a", "", choices=("a", "b")), "c", "one of a, b"),
        (Setting("t", "a", "", longest=2), "aaa", "3 characters"),
    ],
)
def test_invalid_settings_are_rejected(setting, given, words):
    with pytest.raises(UserError, match=words):
        setting.check(given)


def test_integers_are_accepted_as_floats():
    assert Setting("x", 1.0, "").check(2) == 2.0


def test_results_are_shown_by_their_findings():
    assert repr(RESULT) == "Result(attention: numbers, shades, curve, map)\n  most: 0.5\n  infinite: inf"
    assert ">infinite</th>" in RESULT._repr_html_()


def test_results_export_to_json_and_csv():
    document = json.loads(RESULT.to_json())
    assert document["findings"] == {"most": 0.5, "infinite": None}
    assert [part["kind"] for part in document["parts"]] == ["table", "table", "lines", "points"]
    lines = list(csv.reader(io.StringIO(RESULT.to_csv())))
    assert lines[0] == ["part", "row", "column", "value"]
    assert ["numbers", "a", "y", "word"] in lines
    assert ["curve", "1", "one", "0.5"] in lines
    assert ["map", "there", "x", "2.0"] in lines


def test_results_are_drawn_as_svg(tmp_path):
    clearhead.figure(RESULT).save(tmp_path / "lab.svg")
    drawn = (tmp_path / "lab.svg").read_text()
    for word in ("numbers", "curve", "there", "river", "word"):
        assert f">{word}</text>" in drawn, word


def test_unknown_parts_are_rejected():
    assert RESULT.part("curve").x == [1.0, 2.0]
    with pytest.raises(UserError, match="the parts are numbers, shades, curve, map"):
        RESULT.part("nothing")


def test_unknown_labs_and_settings_are_rejected():
    with pytest.raises(UserError, match="did you mean 'attention'"):
        find_lab("atention")
    with pytest.raises(UserError, match="has no setting color"):
        clearhead.lab("attention", color="red")
    with pytest.raises(UserError, match="inspects no model"):
        clearhead.lab("attention", "smollm2")


@pytest.fixture(scope="module")
def untrained():
    """A model with the tokenizer and sizes of the demo's model."""
    texts = [text for document in demo_texts(200) for text in document.read()]
    tokenizer = Tokenizer.train(SETTINGS["tokenizer"], texts, SETTINGS["vocab"])
    sizes = {"n_block": 2, "n_head": 4, "d_model": 64, "n_context": SETTINGS["context"]}
    return LanguageModel(
        Transformer(preset("modern", n_vocab=tokenizer.n_vocab, **sizes)), tokenizer, name="demo"
    )


@pytest.mark.parametrize(("name", "settings"), [("blank", {}), ("window", {}), ("pronoun", {"seeds": 0})])
def test_labs_run_on_a_model_like_the_demos_and_name_it(untrained, name, settings):
    result = clearhead.lab(name, untrained, **settings)
    assert result.findings["model"] == "demo"
    assert result.parts
    assert all(part.values for part in result.parts if isinstance(part, Table))


@pytest.mark.parametrize("lab", LABS.values(), ids=list(LABS))
def test_every_lab_has_a_description_and_valid_defaults(lab):
    assert lab.description.endswith((".", "?"))
    assert lab.question.endswith("?")
    assert lab.check({}) == {setting.name: setting.default for setting in lab.settings}
    for setting in lab.settings:
        words = set(re.findall(r"\w+", setting.description))
        more = words - {setting.name, "the", "a", "of", "in", "to", "number"}
        assert len(more) > 1, f"{setting.name} is described as {setting.description!r}"
