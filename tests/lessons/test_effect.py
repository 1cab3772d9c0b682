"""The effect of steps: losses before and after each, and the part of the expected fall that each weight contributes."""

import pytest
import torch

import clearhead as ch
from clearhead.errors import UserError
from clearhead.lessons.effect import measure_effect
from tests.lessons.conftest import TEXT, make_model

OTHER = "badge"


def test_expected_change_is_gradient_times_change_of_all_parameters(model):
    lesson = ch.learn(model, TEXT)
    effect = measure_effect(lesson, count=10_000)
    after = lesson._after.network.parameters()
    expected = sum(
        (old.grad * (new - old)).sum().item()
        for old, new in zip(lesson.network.parameters(), after, strict=True)
    )
    assert effect.expected == pytest.approx(expected, rel=1e-9)
    changes = [each.loss_change for each in effect.weights]
    assert sum(changes) == pytest.approx(expected, rel=1e-9)
    assert changes == sorted(changes)
    one = effect.weights[0]
    change = lesson.update(one.name).change
    assert one.loss_change == pytest.approx((lesson.gradient[one.name] * change).sum().item(), rel=1e-9)
    assert one.change == pytest.approx(change.norm().item(), rel=1e-9)


def test_a_small_step_changes_the_loss_as_expected():
    lesson = ch.learn(make_model("gpt2"), TEXT, optimizer="adamw", learning_rate=1e-7)
    effect = measure_effect(lesson)
    assert effect.loss.after - effect.loss.before == pytest.approx(effect.expected, rel=1e-3)


def test_biases_do_not_lead_the_list():
    """AdamW's first step changes all numbers equally far, so relative changes would list small weights first."""
    lesson = ch.learn(ch.load("stories", device="cpu"), "Once upon a time there was a fox.")
    assert not any(".b_" in each.name for each in measure_effect(lesson, count=5).weights)


def test_several_steps_have_their_losses_and_their_sum():
    model = make_model("lecture")
    lesson = ch.learn(model, TEXT, optimizer="adamw", learning_rate=0.003)
    effect = measure_effect(lesson, OTHER, steps=3)
    states = [lesson.model, lesson.apply(), lesson.step().apply(), lesson.step(2).apply()]
    for i, (loss, other) in enumerate(effect.steps):
        for change, text in ((loss, TEXT), (other, OTHER)):
            expected = [ch.learn(state, text).loss for state in states[i : i + 2]]
            assert list(change) == pytest.approx(expected, rel=1e-6)
    assert effect.loss == (effect.steps[0].loss.before, effect.steps[-1].loss.after)
    assert effect.other == (effect.steps[0].other.before, effect.steps[-1].other.after)
    single = [measure_effect(each).expected for each in (lesson, lesson.step(), lesson.step(2))]
    assert effect.expected == pytest.approx(sum(single), rel=1e-9)
    torch.testing.assert_close(
        effect.losses[0, :-1].double(), ch.learn(states[-1], TEXT).losses[:-1].double(), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("steps", [0, "1", True])
def test_bad_number_of_steps_is_one_line(steps):
    with pytest.raises(UserError, match="expected an integer of at least 1"):
        measure_effect(ch.learn(make_model("lecture"), TEXT), steps=steps)
