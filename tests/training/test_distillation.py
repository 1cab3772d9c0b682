"""What a student learns: its teachers' mean prediction and, in part, the true target."""

import numpy as np
import pytest
import torch

from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.batches import Batches
from clearhead.text.tokens import IGNORED, Tokens
from clearhead.training.distillation import distillation_loss, mean_prediction
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer

SIZES = {"n_vocab": 11, "n_context": 8, "n_block": 1, "n_head": 1, "d_model": 16}


def make_network(seed):
    torch.manual_seed(seed)
    return Transformer(preset("lecture", **SIZES)).eval()


def softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_mean_is_of_probabilities():
    teachers, inputs = [make_network(seed) for seed in range(3)], torch.randint(11, (2, 8))
    with torch.no_grad():
        expected = np.mean([softmax(teacher(inputs).double().numpy()) for teacher in teachers], axis=0)
    assert mean_prediction(teachers, inputs).numpy() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("true_share", [0.0, 0.2, 1.0])
def test_loss_mixes_true_and_predicted_targets(true_share):
    generator = np.random.default_rng(0)
    logits, predicted = generator.normal(size=(2, 3, 5)), softmax(generator.normal(size=(2, 3, 5)))
    targets = np.array([[1, 4, IGNORED], [0, IGNORED, 2]])
    log_p, expected = np.log(softmax(logits)), 0.0
    for i, j in np.ndindex(2, 3):
        if targets[i, j] != IGNORED:
            expected -= true_share * log_p[i, j, targets[i, j]]
            expected -= (1 - true_share) * predicted[i, j] @ log_p[i, j]
    found = distillation_loss(*map(torch.tensor, (logits, targets, predicted)), true_share)
    assert found.item() == pytest.approx(expected, rel=1e-6)


def test_teachers_read_the_noisy_input_of_the_student():
    """Otherwise the student would be asked for predictions that its input does not support."""
    seen = []
    teacher, student = make_network(1), make_network(2)
    for network in (teacher, student):
        network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    recipe = Recipe(steps=1, batch_size=2, token_noise=0.5, true_share=0.2)
    trainer = Trainer(
        student, Batches(Tokens.of(np.arange(200) % 11), 8, 2, seed=0), recipe, teachers=[teacher]
    )
    batch = trainer.take_batch()[0]
    trainer.take_step()
    one, other = seen
    assert torch.equal(one, other)
    assert not torch.equal(one, batch)


def test_student_learns_what_its_teacher_predicts():
    """With no true target, a student of the teacher's size comes to predict what the teacher does."""
    teacher, student = make_network(1), make_network(2)
    before = {name: each.clone() for name, each in teacher.state_dict().items()}
    batches = Batches(Tokens.of(np.random.default_rng(0).integers(0, 11, 2000)), 8, 8, seed=0)
    recipe = Recipe(steps=60, batch_size=8, true_share=0.0)
    inputs = torch.randint(11, (4, 8))

    def distance():
        with torch.no_grad():
            return (
                (teacher(inputs).softmax(-1) - student.eval()(inputs).softmax(-1)).abs().sum(-1).mean().item()
            )

    first = distance()
    list(Trainer(student, batches, recipe, teachers=[teacher]))
    assert distance() < 0.5 * first
    assert all(torch.equal(before[name], each) for name, each in teacher.state_dict().items())


def test_share_of_the_true_target_is_checked():
    with pytest.raises(Exception, match=r"true_share = 1\.5: expected 0 to 1"):
        Recipe(steps=1, batch_size=1, true_share=1.5)


def record_inputs(network):
    seen = []
    network.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].clone()))
    return seen


def make_trainer(teacher, student, **settings):
    batches = Batches(Tokens.of(np.random.default_rng(0).integers(0, 11, 400)), 8, 4, seed=0)
    recipe = Recipe(**{"steps": 6, "batch_size": 4, "token_noise": 0.3, "true_share": 0.1, **settings})
    return Trainer(student, batches, recipe, teachers=[teacher])


@pytest.mark.parametrize("accumulation", [1, 2])
def test_teachers_read_a_repeating_batch_only_once(accumulation):
    """The student reads it with the same noise each time, but with dropout of its own."""
    teacher, student = make_network(1), make_network(2)
    asked, learned = record_inputs(teacher), record_inputs(student)
    losses = [step.loss for step in make_trainer(teacher, student, repeat_after=2, accumulation=accumulation)]
    asked, learned = (torch.cat(each).reshape(-1, 4, 8) for each in (asked, learned))
    assert len(asked) == 2
    assert torch.equal(learned, asked.repeat(3, 1, 1))
    assert not torch.equal(asked[0], asked[1])
    assert losses[2] < losses[0]


def test_batches_that_repeat_teach_the_same_as_if_teachers_read_them_again():
    """Even bit for bit: their predictions are rounded to half precision in either case."""
    weights = []
    for repeat_after in (0, 6, 10):
        student = make_network(2)
        list(make_trainer(make_network(1), student, repeat_after=repeat_after))
        weights.append(student.state_dict())
    for other in weights[1:]:
        assert all(torch.equal(each, other[name]) for name, each in weights[0].items())


def test_student_resumes_to_the_same_weights_among_batches_that_repeat():
    whole, first, second = (make_trainer(make_network(1), make_network(2), repeat_after=4) for _ in range(3))
    list(whole)
    for _ in zip(range(5), first, strict=False):
        pass
    second.restore(5, first.tensors())
    list(second)
    assert all(torch.equal(each, second.tensors()[name]) for name, each in whole.tensors().items())


def test_time_of_the_teachers_is_measured_separately():
    trainer = make_trainer(make_network(1), make_network(2), repeat_after=4)
    assert trainer.asking_left() == 0
    trainer.take_step()
    assert trainer.asking_left() == pytest.approx(3 * trainer.asking)
    list(trainer)
    assert trainer.asking > 0
    assert trainer.asking_left() == 0
    always = make_trainer(make_network(1), make_network(2))
    list(always)
    assert always.asking == 0


def test_repetition_is_checked():
    with pytest.raises(Exception, match="repeat_after = -1: expected 0 or more"):
        Recipe(steps=1, batch_size=1, repeat_after=-1)
