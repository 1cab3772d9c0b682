"""The terms of an update sum to the change, for both optimizers."""

import pytest
import torch

import clearhead as ch
from clearhead.inspect.weights import weight_names
from clearhead.lessons.lesson import fork
from clearhead.lessons.update import Update
from tests.lessons.conftest import TEXT, make_model

NAMES = {
    "adamw": ["gradient", "clipping", "momentum", "second_moment", "weight_decay", "rounding"],
    "muon": ["gradient", "clipping", "momentum", "newton_schulz", "shape", "weight_decay", "rounding"],
}


@pytest.mark.parametrize("optimizer", NAMES)
def test_terms_sum_to_the_change_of_every_weight(optimizer):
    model = make_model("gpt2")
    lesson = ch.learn(model, TEXT, optimizer=optimizer, weight_decay=0.1).step(3)  # with momentum
    after = lesson.apply()
    for name in weight_names(model.config):
        if name.endswith(("QK", "OV")):
            continue
        update = lesson.update(name)
        assert torch.equal(update.after, after.weight(name)), name
        assert torch.equal(update.before, lesson.model.weight(name)), name
        torch.testing.assert_close(sum(update.terms.values()), update.change, rtol=0, atol=1e-15)
        assert update.terms["rounding"].abs().max() <= 1e-12, name
        is_matrix = name.startswith("block.") and update.before.dim() == 2
        assert list(update.terms) == NAMES[optimizer if is_matrix else "adamw"], name


def test_stages_are_the_directions_of_the_optimizer():
    model = make_model("lecture")
    update = ch.learn(model, TEXT, optimizer="adamw", learning_rate=0.01).update("block.0.W_1")
    torch.testing.assert_close(
        update.stages["momentum"], update.stages["clipping"].double()
    )  # at the first step
    g = update.stages["momentum"]
    torch.testing.assert_close(update.stages["second_moment"], g / (g.abs() + 1e-8))
    torch.testing.assert_close(update.state["second_moment"], 0.05 * g.square())
    assert update.learning_rate == 0.01
    assert list(update.at(1, 2)) == ["before", *NAMES["adamw"], "after"]
    assert "block.0.W_1: a change of norm" in repr(update)
    assert "<table>" in update._repr_html_()


def test_rows_of_normuon():
    model = make_model("modern")
    model.training = {"recipe": {"optimizer": "muon", "normalize_rows": True, "clip": 0.5}}
    lesson = ch.learn(model, TEXT).step(2)
    update = lesson.update("block.1.W_1")
    assert list(update.terms)[2:5] == ["momentum", "newton_schulz", "rows"]
    assert lesson.trainer.recipe.clip == 0.5
    norms = [update.stages[stage].norm() for stage in ("newton_schulz", "rows")]
    torch.testing.assert_close(*norms)  # NorMuon keeps the norm
    assert update.terms["rounding"].abs().max() <= 1e-12
    assert update.state["second_moment"].shape == update.before.shape


def make_update(goes_up, **terms):
    numbers = {name: torch.tensor([value], dtype=torch.float64) for name, value in terms.items()}
    before = torch.zeros(1, dtype=torch.float64)
    after = sum(numbers.values())
    assert (after > 0).item() == goes_up
    return Update("final.gain", before, after, 0.01, 0.1, {}, numbers, {})


@pytest.mark.parametrize(
    ("cause", "goes_up", "terms"),
    [
        ("gradient", True, {"gradient": 3.0, "clipping": -1.0, "momentum": 1.0, "weight_decay": -0.5}),
        ("gradient", True, {"gradient": 3.0, "momentum": -2.0, "second_moment": 4.0, "weight_decay": 2.0}),
        ("momentum", False, {"gradient": 3.0, "momentum": -4.0, "second_moment": -9.0, "weight_decay": 1.0}),
        ("momentum", False, {"gradient": 0.0, "momentum": -4.0, "second_moment": -9.0}),
        ("newton_schulz", True, {"gradient": -3.0, "clipping": 2.0, "newton_schulz": 2.0, "shape": 5.0}),
        ("newton_schulz", True, {"gradient": 3.0, "momentum": -4.0, "newton_schulz": 2.0}),
        ("weight_decay", True, {"gradient": -3.0, "momentum": 1.0, "weight_decay": 4.0}),
        ("weight_decay", True, {"gradient": 3.0, "momentum": -2.0, "weight_decay": 4.0}),
        ("weight_decay", False, {"gradient": 0.0, "momentum": 0.0, "weight_decay": -4.0, "rounding": 0.1}),
        ("rounding", True, {"gradient": -1.0, "weight_decay": -1.0, "rounding": 3.0}),
        ("adapter_B", True, {"adapter_A": 1.0, "adapter_B": 3.0, "adapter_AB": -1.0}),
    ],
)
def test_the_cause_of_a_direction(cause, goes_up, terms):
    assert make_update(goes_up, **terms).cause(0) == cause


def test_an_unchanged_weight_has_no_cause():
    assert (
        Update("final.gain", *torch.zeros(2, 1), 0.0, 0.0, {}, {"frozen": torch.zeros(1)}, {}).cause(0)
        is None
    )


def test_a_tiny_gradient_moves_a_weight_by_less_than_the_learning_rate():
    """AdamW's first step is the learning rate times g/(|g| + epsilon)."""
    model = make_model("lecture")
    update = ch.learn(model, TEXT, optimizer="adamw", weight_decay=0.0).update("block.0.W_1")
    g = update.stages["clipping"].double()
    expected = -update.learning_rate * g / (g.abs() + update.epsilon)
    torch.testing.assert_close(update.change, expected, rtol=1e-6, atol=1e-12)


def test_a_step_that_is_not_finite_is_skipped():
    model = make_model("lecture")
    model.network.final_norm.gain.data[0] = torch.nan
    lesson = ch.learn(model, TEXT)
    assert torch.equal(lesson.apply().weight("block.0.W_1"), model.weight("block.0.W_1"))


def test_a_fork_shares_nothing_with_the_original():
    lesson = ch.learn(make_model("lecture"), TEXT)
    copied = fork(lesson.trainer)
    for own, other in zip(lesson.trainer.tensors().values(), copied.tensors().values(), strict=True):
        assert torch.equal(own, other)
        assert own.data_ptr() != other.data_ptr()


def test_snapshots_are_trained_with_the_recipe_of_their_run():
    run, snapshot = ch.load("stories", device="cpu"), ch.load("stories", device="cpu", step=100)
    assert run.training is not None
    own, early = (ch.learn(model, "Once upon a time").trainer.recipe for model in (run, snapshot))
    assert early == own
    assert early.optimizer == "muon"


def test_damaged_recipe_is_one_line():
    model = make_model("lecture")
    for recipe in ({"learning_rate": "fast"}, {"optimizer": 3}, {"clip": None}, {"matrix_rate": True}):
        model.training = {"recipe": recipe}
        with pytest.raises(ch.UserError, match="the recipe saved with the model is damaged"):
            ch.learn(model, TEXT)
