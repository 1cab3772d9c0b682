"""Documents that share a row: each has exactly the loss and the gradients that it has alone."""

import numpy as np
import pytest
import torch

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.batches import Batch, Batches, Blanks
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.tokens import Tokens
from clearhead.training.objective import cross_entropy, evaluate, predict_in_parts
from clearhead.training.position_loss import measure_positions
from clearhead.training.recipe import Recipe
from clearhead.training.trainer import Trainer

V, T, END = 20, 24, 18
CPU = torch.device("cpu")


def texts():
    random = np.random.default_rng(5)
    return [random.integers(0, END, length).tolist() for length in (5, 7, 40, 3, 24, 23, 11, 1, 9)]


def tokens():
    return Tokens.of([END, *(i for text in texts() for i in [*text, END])], separator=END)


def make(kind):
    torch.manual_seed(1)
    if kind == "ngram":
        return estimate(count_ngrams(tokens(), V, END, 3))
    if kind in ("elman", "gru", "lstm"):
        return Recurrent(RecurrentConfig(kind, n_vocab=V, n_context=T, n_block=2, d_model=16)).double()
    settings = {}
    if kind == "local":
        kind, settings = "modern", {"window": 4, "local_blocks": (0,)}
    if kind == "bidirectional":
        kind, settings = "gpt2", {"causal": False}
    config = preset(kind, n_vocab=V, n_context=T, n_block=2, n_head=2, d_model=16, **settings)
    return Transformer(config).double()


@pytest.mark.parametrize(
    "kind", ["lecture", "gpt2", "modern", "local", "bidirectional", "elman", "gru", "lstm", "ngram"]
)
def test_each_document_has_the_loss_that_it_has_alone(kind):
    network = make(kind)
    blanks = Blanks(V - 1) if kind == "bidirectional" else None
    if blanks is not None:
        singles = [list(windows_for_evaluation(Tokens.of([*t, END]), T, 4, END, blanks)) for t in texts()]
        counts = [sum(int((b.targets >= 0).sum()) for b in single) for single in singles]
        losses = [evaluate(network, single) for single in singles]
    else:
        # By hand: windows of T tokens from the start of each document.
        counts, losses = [], []
        for text in texts():
            ids, total = [END, *text, END], 0.0
            for start in range(0, len(ids) - 1, T):
                part = ids[start : start + T + 1]
                logits = network(torch.tensor([part[:-1]]))[0].log_softmax(-1)
                total -= logits.gather(1, torch.tensor(part[1:])[:, None]).sum().item()
            counts.append(len(text) + 1)
            losses.append(total / counts[-1])
    alone = np.average(losses, weights=counts)
    for rows in (1, 2, 8):
        windows = list(windows_for_evaluation(tokens().part(1), T, rows, END, blanks))
        assert any(window.documents is not None for window in windows)
        assert evaluate(network, windows) == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("kind", ["gpt2", "modern", "gru", "lstm"])
def test_packed_document_gives_the_gradients_of_the_document_alone(kind):
    network = make(kind)
    row = [END, *texts()[0], END, *texts()[1], END, *texts()[3], END]
    documents = np.cumsum(np.array(row[:-1]) == END)[None]
    packed = Batch(np.array([row[:-1]]), np.array([row[1:]]), documents)
    [(_, logits)] = predict_in_parts(network, packed, CPU)
    cross_entropy(logits, torch.from_numpy(packed.targets), "sum").backward()
    together = [parameter.grad.clone() for parameter in network.parameters() if parameter.grad is not None]
    network.zero_grad()
    for text in (texts()[0], texts()[1], texts()[3]):
        ids = torch.tensor([[END, *text, END]])
        cross_entropy(network(ids[:, :-1]), ids[:, 1:], "sum").backward()
    alone = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    assert all(
        torch.allclose(one, other, rtol=1e-4, atol=1e-6) for one, other in zip(together, alone, strict=True)
    )


def test_training_does_not_see_across_documents():
    """What precedes a document in its window changes neither its loss nor its gradients."""
    losses = []
    for first in (1, 2):
        ids = np.array([END, *[first] * 10, END, 5, 6, 7, END, 8, 9, 10, END])
        targets = np.where(np.arange(len(ids)) > 12, ids, -100)
        network = make("modern").float()
        batches = Batches(Tokens.of(ids, Tokens.of(targets), separator=END), 10, 1, seed=0)
        at = next(step for step in range(50) if (batches.at(step).inputs[0] == first).sum() > 2)
        trainer = Trainer(network, batches, Recipe(steps=100, batch_size=1))
        trainer.step = at
        losses.append(trainer.take_step().loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_position_is_counted_from_the_start_of_the_document():
    network = make("gpt2")
    windows = list(windows_for_evaluation(tokens().part(1), T, 4, END))
    losses = measure_positions(network, windows, T)
    assert losses.tokens == len(tokens()) - 1
    lengths = [len(text) + 1 for text in texts()]
    expected = [
        sum(max(0, min(T, n - start)) > p for n in lengths for start in range(0, n, T)) for p in range(T)
    ]
    assert losses.counts.tolist() == expected
    assert losses.total / losses.tokens == pytest.approx(evaluate(network, windows), rel=1e-6)
