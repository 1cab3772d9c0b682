"""The model that comes with the package: found by name, listed, small, fluent, and with heads that have clear roles."""

from pathlib import Path

import pytest
import torch

import clearhead as ch
from clearhead.errors import UserError
from clearhead.formats.builtin import BUILTIN, NAMES, find
from clearhead.formats.listing import list_models
from clearhead.formats.opening import find_model, list_snapshots
from clearhead.formats.places import all_places, name_models
from tools.stories_corpus import make_corpus
from tools.train_stories import LARGEST, describe


@pytest.fixture(scope="module")
def model():
    return ch.load("stories", device="cpu")


def test_name_is_found_unless_a_folder_shares_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_model("stories") == find("stories") == BUILTIN / "stories"
    assert find("../builtin/stories") is None
    Path("stories").mkdir()
    assert find_model("stories") == Path("stories")
    with pytest.raises(UserError, match="stories has no snapshot of step 1"):
        ch.load("stories", step=1)


def test_model_is_named_and_inspected(model):
    assert model.name == "stories"
    assert model.training["preset"] == "lecture"
    trace = model.inspect("The chicken didn't cross the road because it was too tired.")
    assert trace.tokens[:5] == ["The", " chicken", " didn", "'t", " cross"]
    assert trace.verify() < 1e-4


def test_weights_are_float16_on_disk_and_read_exactly(model):
    again = ch.load("stories", device="cpu", dtype="float16")
    for one, other in zip(model.network.parameters(), again.network.parameters(), strict=True):
        assert one.dtype == torch.float32
        assert torch.equal(one, other.float())


def test_snapshots_are_loaded_by_step():
    steps = list_snapshots(BUILTIN / "stories")
    assert len(steps) >= 2
    assert ch.load("stories", device="cpu", step=steps[0]).name == f"stories@{steps[0]}"
    with pytest.raises(UserError, match=f"no snapshot of step 7777: expected one of {steps[0]}, "):
        ch.load("stories", step=7777)


def test_model_is_listed_by_name_and_last():
    listed = list_models(all_places())[-1]
    assert (listed.name, listed.origin, listed.license) == ("stories", "built-in", "Apache-2.0")
    assert listed.made == 0
    assert list(name_models())[-1:] == list(NAMES)


def test_package_data_is_small():
    assert sum(path.stat().st_size for path in BUILTIN.rglob("*") if path.is_file()) <= LARGEST


@pytest.mark.slow
def test_stories_are_fluent_and_heads_have_roles(model):
    found = describe(model, make_corpus(10, validation=100).validation)
    assert found["parsed"] > 0.95
    assert found["same_names"] > 0.9
    for kind in ("previous", "induction", "antecedent"):
        assert found["heads"][kind]["score"] > 5 * found["heads"][kind]["chance"], kind
