"""Two small transformers that learn what `it` refers to: one causal, one bidirectional."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clearhead.inspect.trace import Trace
from clearhead.labs.antecedents import BLANK, LONGEST, SentenceBatch, sentences, vocabulary
from clearhead.labs.lab import Watch
from clearhead.labs.small_networks import take_step
from clearhead.model.config import Config
from clearhead.model.transformer import Transformer
from clearhead.text.batches import Blanks
from clearhead.text.tokens import IGNORED

BLOCKS, HEADS, WIDTH = 2, 4, 64
LARGER = 4.0  # multiplies the usual initial weights: nearly uniform attention learns slowly
SENTENCES = 32  # sentences per step; every other one has blanks
RATE, WARM, COOL = (
    0.003,
    50,
    0.3,
)  # peak learning rate, warmup steps, and the fraction of steps over which the rate decays
STOPS = 6  # evaluations after the first
ROUNDING = 1e-4  # smaller differences between weights are rounding errors
MOST_ITERATIONS = 5000  # of the probe


@dataclass(frozen=True)
class Measures:
    """Measurements on the test sentences, and on the vectors at the pronoun."""

    right_at_it: float  # share of sentences in which the prediction, over all words, is the antecedent
    right_at_end: float
    looks: float  # weight of all heads on the antecedent minus that on the other noun
    looks_right: float  # fraction of pairs in which a noun gets more attention when it is the antecedent
    apart: float  # the largest difference between the two vectors of a pair, in any feature
    flipped: float  # share of answers that become the other noun if the twin's vector is patched in
    probe: float | None = None  # accuracy of a classifier fitted to the training sentences


def make_network(causal: bool, seed: int) -> Transformer:
    """A network whose initial weights depend on the seed, not on the mask."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Transformer(Config(len(vocabulary()), LONGEST, BLOCKS, HEADS, WIDTH, causal=causal))
    for weights in network.parameters():
        if weights.dim() == 2:
            weights.data.mul_(LARGER)
    return network


def train(network: Transformer, steps: int, seed: int, asked: bool, watch: Watch) -> Iterator[int]:
    """Train, and yield the steps at which to evaluate, from before the first step to after the last.

    Words are masked in half of the sentences; if `asked`, the antecedent is also the target at the pronoun
    and at the end.
    """
    random, learned = np.random.default_rng(seed), SentenceBatch.of(sentences()[0])
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, weight_decay=0.01)
    every = max(1, steps // STOPS)
    for step in range(steps):
        if step % every == 0 and step + every <= steps:
            yield step
        watch()
        rate = min(1.0, (step + 1) / WARM, (steps - step) / (COOL * steps))
        optimizer.param_groups[0]["lr"] = RATE * rate
        chosen = torch.from_numpy(random.integers(len(learned), size=SENTENCES))
        inputs, targets = _hide(learned.pick(chosen), random, asked)
        loss = F.cross_entropy(network(inputs).transpose(1, 2), targets, ignore_index=IGNORED)
        take_step(network, optimizer, loss)
    yield steps


def _hide(batch: SentenceBatch, random: np.random.Generator, asked: bool) -> tuple[Tensor, Tensor]:
    inputs, targets = batch.ids.clone(), torch.full_like(batch.ids, IGNORED)
    blanks = Blanks(vocabulary().index(BLANK)).cut(batch.ids[::2].numpy(), random)
    inputs[::2], targets[::2] = torch.from_numpy(blanks[0]), torch.from_numpy(blanks[1])
    if asked:
        for places in (batch.pronouns, batch.ends):
            inputs[batch.rows, places] = batch.ids[batch.rows, places]
            targets[batch.rows, places] = batch.answers
    return inputs, targets


@torch.no_grad()
def measure(network: Transformer, probe: bool = False) -> Measures:
    tested = SentenceBatch.of(sentences()[1])
    rows, at, twins = tested.rows, tested.pronouns, tested.rows ^ 1
    trace = _trace(network, tested)
    said, weights = trace.logits.argmax(-1), look_from(trace, tested)
    lean = weights[rows, tested.nouns[:, 0]] - weights[rows, tested.nouns[:, 1]]
    site = f"block.{BLOCKS - 1}.input"
    entering = trace.read(site).clone()
    entering[rows, at] = entering[twins, at[twins]]
    now = trace.edit({site: entering}).logits[rows, at].argmax(-1)
    # Each half separately: batches of the same shape are rounded the same way, so equal results are bitwise equal.
    first, second = (_vectors(network, tested.pick(rows[half::2])) for half in range(2))
    return Measures(
        right_at_it=_share(said[rows, at] == tested.answers),
        right_at_end=_share(said[rows, tested.ends] == tested.answers),
        looks=torch.where(tested.meant == 0, lean, -lean).mean().item(),
        looks_right=_share(lean[::2] - lean[1::2] > ROUNDING),
        apart=(first - second).abs().max().item(),
        flipped=_share((now == tested.answers[twins]) & (now != said[rows, at])),
        probe=_probe(network, first, second) if probe else None,
    )


def look_from(trace: Trace, batch: SentenceBatch) -> Tensor:
    """The weights of all heads, summed, from the pronoun to every word: B T."""
    summed = sum((trace.weights(i).sum(1) for i in range(BLOCKS)), torch.zeros(()))
    return summed[batch.rows, batch.pronouns]


def _trace(network: Transformer, batch: SentenceBatch) -> Trace:
    return Trace(network, batch.ids, [[]] * len(batch), single=False)


def _vectors(network: Transformer, batch: SentenceBatch) -> Tensor:
    """The final vector at the pronoun: B C."""
    return _trace(network, batch).read("final")[batch.rows, batch.pronouns]


def _probe(network: Transformer, first: Tensor, second: Tensor) -> float:
    """The accuracy of logistic regression at predicting whether the antecedent is the first noun or the second."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    learned = SentenceBatch.of(sentences()[0])
    with threadpool_limits(1):
        classifier = LogisticRegression(max_iter=MOST_ITERATIONS)
        classifier.fit(_vectors(network, learned).numpy(), learned.meant.numpy())
        right = (classifier.predict(first.numpy()) == 0, classifier.predict(second.numpy()) == 1)
    return float(np.concatenate(right).mean())


def _share(right: Tensor) -> float:
    return right.float().mean().item()
