import math

import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.batches import Batches
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.tokens import Tokens
from clearhead.training.objective import cross_entropy, evaluate
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer


def tokens(length: int = 400) -> Tokens:
    """A repeating count, which is easy to learn."""
    return Tokens.of(np.arange(length) % 7)


def trainer(**settings: object) -> Trainer:
    torch.manual_seed(0)
    network = Transformer(preset("modern", n_vocab=7, n_context=16, n_block=1, n_head=2, d_model=16))
    recipe = Recipe(**{"steps": 30, "batch_size": 4, **settings})
    return Trainer(network, Batches(tokens(), 16, recipe.batch_size, seed=3), recipe)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_training_reduces_the_loss(optimizer):
    records = list(trainer(optimizer=optimizer, learning_rate=0.02, steps=100))
    assert [record.step for record in records] == list(range(1, 101))
    assert records[0].loss == pytest.approx(math.log(7), abs=0.1)
    assert records[-1].loss < 0.3
    assert records[-1].tokens == 100 * 4 * 16
    assert all(record.seconds > 0 and record.gradient_norm > 0 for record in records)


def test_training_is_bitwise_reproducible():
    one, other = trainer(), trainer()
    assert [record.loss for record in one] == [record.loss for record in other]
    for a, b in zip(one.network.parameters(), other.network.parameters(), strict=True):
        assert torch.equal(a, b)


def test_accumulation_gives_the_same_gradient():
    whole, parts = trainer(steps=3), trainer(steps=3, accumulation=4)
    for one, other in zip(whole, parts, strict=True):
        assert one.loss == pytest.approx(other.loss, abs=1e-5)
        assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-3)


def test_the_gradient_is_clipped():
    it = trainer(clip=1e-3, optimizer="adamw")
    seen = []
    it.optimizers[0].register_step_pre_hook(
        lambda *_: seen.append(math.hypot(*(p.grad.norm().item() for p in it.network.parameters())))
    )
    record = it.take_step()
    assert record.gradient_norm > 1e-2
    assert seen[0] == pytest.approx(1e-3, rel=1e-2)


def test_step_with_a_nonfinite_loss_is_skipped():
    it = trainer()
    it.network.embedding.weight.data[0] = math.inf
    before = it.network.final_norm.gain.detach().clone()
    record = it.take_step()
    assert record.skipped
    assert it.step == 1
    assert torch.equal(it.network.final_norm.gain, before)


@pytest.mark.parametrize(
    "settings", [{"optimizer": "muon"}, {"optimizer": "muon", "normalize_rows": True}, {"optimizer": "adamw"}]
)
def test_restored_trainer_resumes_bit_for_bit(settings):
    whole = trainer(**settings)
    losses = [whole.take_step().loss for _ in range(6)]
    broken = trainer(**settings)
    for _ in range(3):
        broken.take_step()
    kept = {name: tensor.detach().clone() for name, tensor in broken.tensors().items()}
    again = trainer(**settings)
    torch.manual_seed(99)  # the global random state must not matter
    again.restore(3, kept)
    assert [again.take_step().loss for _ in range(3)] == losses[3:]
    for (name, one), other in zip(whole.tensors().items(), again.tensors().values(), strict=True):
        assert torch.equal(one, other), name


def test_checkpoint_of_another_version_is_rejected_without_side_effects():
    it = trainer(normalize_rows=True)
    before = {name: tensor.detach().clone() for name, tensor in it.tensors().items()}
    other = {name: tensor + 1 for name, tensor in before.items() if not name.endswith(".square")}
    with pytest.raises(
        UserError, match=r"step 3 was written by a different version of clearhead \(it has no optimizer"
    ):
        it.restore(3, other)
    assert it.step == 0
    assert all(torch.equal(tensor, before[name]) for name, tensor in it.tensors().items())


def test_evaluation_is_the_exact_mean_for_any_batch_size():
    network = trainer().network.eval()
    held = Tokens.of(np.random.default_rng(0).integers(0, 7, 77))
    total = 0.0
    row = [2, *held[:].tolist()]
    with torch.no_grad():
        for start in range(0, 77, 16):
            window = torch.tensor(row[start : start + 17])
            logits = network(window[None, :-1])[0].log_softmax(-1)
            total -= sum(logits[i, token].item() for i, token in enumerate(window[1:]))
    for batch_size in (1, 3, 100):
        loss = evaluate(network, windows_for_evaluation(held, 16, batch_size, before=2))
        assert loss == pytest.approx(total / 77, abs=1e-5)
    assert not network.training


def test_the_loss_is_in_nats():
    logits = torch.tensor([[[0.0, math.log(3.0)]]])
    assert cross_entropy(logits, torch.tensor([[1]])).item() == pytest.approx(math.log(4 / 3))


def test_record_has_the_learning_rate_of_the_matrices():
    for optimizer, rate in (("muon", 0.02), ("adamw", 0.005)):
        settings = {"optimizer": optimizer, "matrix_rate": 0.02, "learning_rate": 0.005, "warmup": 1}
        records = list(trainer(steps=10, **settings))
        assert records[0].learning_rate == pytest.approx(rate)
        assert records[5].learning_rate == pytest.approx(rate / 2)
