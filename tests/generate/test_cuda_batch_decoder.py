"""Continuous batching through captured steps, with recorded steps in place of those of a GPU."""

from typing import ClassVar

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate import cuda_batch_decoder
from clearhead.generate.cuda_batch_decoder import AHEAD, CudaBatchDecoder, make_cuda_batch_decoder
from clearhead.generate.cuda_step import UNIFORM
from clearhead.generate.sampler import Sampler
from clearhead.generate.sampling import Sampling
from clearhead.generate.scheduler import make_batch_decoder
from clearhead.text.tokenizer import Tokenizer

V = 257
TOKENIZER = Tokenizer.train("byte", [])


def logits_of(i, position):
    return 3 * torch.randn(V, generator=torch.Generator().manual_seed(1000 * int(i) + int(position)))


class RecordedStep:
    """What a captured step does to its rows, for a model that knows only the last token and its position."""

    ran: ClassVar = []

    def __init__(self, weights, rows, cache, uniforms, sampled, tuning):
        self.rows, self.sampled, self.B = rows, sampled, len(rows)
        self.logits = torch.zeros(len(rows), V)

    def run(self, filtered):
        type(self).ran.append((self.B, self.rows[:, 2].tolist()))
        for b, row in enumerate(self.rows):
            i, position, _, step, temperature, top_k, top_p, min_p = row[:UNIFORM].tolist()
            self.logits[b] = logits_of(i, position)
            sampling = Sampling(temperature, int(top_k) or None, top_p or None, min_p or None)
            sampler = Sampler(sampling, TOKENIZER, V)
            uniform = row[UNIFORM + int(step)][None].clone()
            sampler.uniforms = lambda _, uniform=uniform: uniform
            i = sampler._choose(self.logits[b])
            self.sampled[b, int(step)] = i
            row[0], row[1], row[3] = i, position + 1, step + 1


@pytest.fixture
def decoder(make, monkeypatch):
    monkeypatch.setattr(cuda_batch_decoder, "CudaStep", RecordedStep)
    RecordedStep.ran = []
    return CudaBatchDecoder(make("modern"), 5)


def make_sampler(seed, **settings):
    return Sampler(Sampling(**settings), TOKENIZER, V, seed=seed)


def expected(start, position, count, seed, **settings):
    sampler, ids = make_sampler(seed, **settings), [start]
    for n in range(count):
        ids.append(sampler._choose(sampler._apply_rules(logits_of(ids[-1], position + n))))
    return ids[1:]


def test_sequences_join_and_leave_without_changing_each_other(decoder):
    settings = [{"temperature": 0.9}, {"temperature": 0.0}, {"top_p": 0.8}, {"top_k": 9, "min_p": 0.01}]
    lives = [(0, 3, 12), (2, 0, 20), (4, 6, 9), (0, 15, 8)]  # slot, first step, number of steps
    samplers = [make_sampler(seed, **each) for seed, each in enumerate(settings)]
    found = [[40 + n] for n in range(4)]
    for now in range(24):
        running = sorted(
            (slot, n) for n, (slot, first, count) in enumerate(lives) if first <= now < first + count
        )
        if running:
            numbers = [n for _, n in running]
            tokens = decoder.decode(
                [slot for slot, _ in running],
                [found[n][-1] for n in numbers],
                [5 + now - lives[n][1] for n in numbers],
                [samplers[n] for n in numbers],
            )
            for n, token in zip(numbers, tokens, strict=True):
                found[n].append(token)
    for n, (_, _, count) in enumerate(lives):
        assert found[n][1:] == expected(40 + n, 5, count, n, **settings[n])
    assert {width for width, _ in RecordedStep.ran} == {
        1,
        2,
        4,
    }  # the smallest with enough rows, and no other


def test_next_step_runs_while_the_last_tokens_are_read(decoder):
    sampler, ids = make_sampler(1), [65]
    for n in range(2 * AHEAD):
        ids += decoder.decode([3], ids[-1:], [n], [sampler])
        launched = decoder.batch.launched
        assert launched == min(AHEAD, n % AHEAD + 2)
    assert ids[1:] == expected(65, 0, 2 * AHEAD, 1)
    assert len(RecordedStep.ran) == 2 * AHEAD  # nothing was computed twice


def test_rows_of_no_sequence_use_a_slot_of_their_own(decoder):
    decoder.decode([0, 1, 2], [1, 2, 3], [0, 0, 0], [make_sampler(n) for n in range(3)])
    assert RecordedStep.ran[0] == (4, [0, 1, 2, 5])


def test_nothing_runs_past_the_end_of_the_context(decoder):
    sampler = make_sampler(1)
    last = int(decoder.max_length) - 1
    [token] = decoder.decode([0], [65], [last - 1], [sampler])
    decoder.decode([0], [token], [last], [sampler])
    assert decoder.batch.launched == 2


def test_logits_come_to_the_cpu_for_rules_that_the_device_does_not_know(decoder):
    penalized, plain = make_sampler(1, repetition_penalty=1.5), make_sampler(2)
    logits, token = decoder.decode([1, 3], [7, 8], [4, 5], [penalized, plain])
    assert torch.equal(logits, logits_of(7, 4))
    assert [token] == expected(8, 5, 1, 2)
    assert decoder.batch.launched == 1  # the next step would overwrite the logits
    assert torch.equal(decoder.decode_one([1, 3], [7, 8], [4, 5])[1], logits_of(8, 5))


def test_broken_logits_are_an_error_of_their_sequence_only(decoder, monkeypatch):
    healthy, broken = make_sampler(1), make_sampler(2)

    def run(step, filtered, plain=RecordedStep.run):
        plain(step, filtered)
        step.logits[1], step.sampled[1, 0] = float("nan"), -1

    monkeypatch.setattr(RecordedStep, "run", run)
    token, logits = decoder.decode([0, 1], [7, 8], [4, 5], [healthy, broken])
    assert [token] == expected(7, 4, 1, 1)
    with pytest.raises(UserError, match="load the model in float32"):
        broken.sample(logits)


def test_the_scheduler_falls_back_with_a_warning(make, monkeypatch):
    network = make("modern")
    assert make_cuda_batch_decoder(network, 2) is None  # on the CPU, without a warning

    class Refusing(RecordedStep):
        def run(self, filtered):
            raise RuntimeError("no kernel image is available")

    monkeypatch.setattr(cuda_batch_decoder, "CudaStep", Refusing)
    monkeypatch.setattr(cuda_batch_decoder, "cannot_run", lambda _: None)
    graph = lambda *_: type("G", (), {"capture": lambda _, work, **__: work()})()  # noqa: E731
    monkeypatch.setattr(cuda_batch_decoder, "_make_graph", graph)
    with pytest.warns(
        UserWarning, match="^generating slowly, without CUDA graphs: no kernel image is available$"
    ):
        assert type(make_batch_decoder(network, 2)).__name__ == "TransformerBatchDecoder"
