"""Continuous batching through captured steps, with recorded steps in place of those of a GPU."""

from typing import ClassVar

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate import cuda_batch_decoder, scheduler
from clearhead.generate.cuda_batch_decoder import AHEAD, CudaBatchDecoder, make_cuda_batch_decoder
from clearhead.generate.request import GenerationRequest, Handle
from clearhead.generate.sampler import Sampler
from clearhead.generate.sampling import Sampling
from clearhead.generate.scheduler import Scheduler, make_batch_decoder
from clearhead.text.tokenizer import Tokenizer

V = 257
TOKENIZER = Tokenizer.train("byte", [])


def logits_of(i, position):
    return 3 * torch.randn(V, generator=torch.Generator().manual_seed(1000 * int(i) + int(position)))


class RecordedStep:
    """What a captured step does to its rows, for a model that knows only the last token and its position."""

    ran: ClassVar = []

    def __init__(self, weights, rows, cache, uniforms, sampled, tuning):
        self.rows, self.uniforms, self.sampled, self.B = rows, uniforms, sampled, len(rows)
        self.logits = torch.zeros(len(rows), V)

    def run(self, filtered):
        type(self).ran.append((self.B, self.rows[:, 2].tolist()))
        assert self.rows[:, 1].max() < 160, "a row runs past the end of the context"
        for b, row in enumerate(self.rows):
            i, position, _, step, temperature, top_k, top_p, min_p = row[:8].tolist()
            self.logits[b] = logits_of(i, position)
            sampling = Sampling(temperature, int(top_k) or None, top_p or None, min_p or None)
            sampler = Sampler(sampling, TOKENIZER, V)
            uniform = self.uniforms[b, int(step)][None].clone()
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


def test_rows_without_a_sequence_use_a_slot_of_their_own(decoder):
    decoder.decode([0, 1, 2], [1, 2, 3], [0, 0, 0], [make_sampler(n) for n in range(3)])
    assert RecordedStep.ran[0] == (4, [0, 1, 2, 5])


def test_nothing_runs_past_the_end_of_the_context(decoder):
    sampler = make_sampler(1)
    last = int(decoder.max_length) - 1
    [token] = decoder.decode([0], [65], [last - 1], [sampler])
    decoder.decode([0], [token], [last], [sampler])
    assert decoder.batch.launched == 2


def test_sequence_that_fills_its_context_does_not_run_on_while_others_do(decoder):
    full, other = make_sampler(1), make_sampler(2)
    last, ids = int(decoder.max_length) - 1, [66]
    _, token = decoder.decode([0, 1], [65, 66], [last, 0], [full, other])
    ids.append(token)
    for n in range(1, 4):
        ids += decoder.decode([1], ids[-1:], [n], [other])
    assert ids[1:] == expected(66, 0, 4, 2)


def test_logits_come_to_the_cpu_for_rules_that_the_device_does_not_know(decoder):
    penalized, plain = make_sampler(1, repetition_penalty=1.5), make_sampler(2)
    logits, token = decoder.decode([1, 3], [7, 8], [4, 5], [penalized, plain])
    assert torch.equal(logits, logits_of(7, 4))
    assert [token] == expected(8, 5, 1, 2)
    assert decoder.batch.launched == 1  # the next step would overwrite the logits
    assert torch.equal(decoder.decode_one([1, 3], [7, 8], [4, 5])[1], logits_of(8, 5))


def test_broken_logits_fail_only_their_own_sequence(decoder, monkeypatch):
    healthy, broken = make_sampler(1), make_sampler(2)

    def run(step, filtered, plain=RecordedStep.run):
        plain(step, filtered)
        step.logits[1], step.sampled[1, 0] = float("nan"), -1

    monkeypatch.setattr(RecordedStep, "run", run)
    token, logits = decoder.decode([0, 1], [7, 8], [4, 5], [healthy, broken])
    assert [token] == expected(7, 4, 1, 1)
    with pytest.raises(UserError, match="load the model in float32"):
        broken.sample(logits)


def test_logits_come_to_the_cpu_for_a_grammar(decoder):
    class Grammar:
        def begin(self):
            return self

    constrained = Sampler(Sampling(), TOKENIZER, V, grammar=Grammar())
    [logits] = decoder.decode([1], [7], [4], [constrained])
    assert torch.equal(logits, logits_of(7, 4))


@pytest.fixture
def serving(decoder, monkeypatch):
    """A scheduler with recorded steps, and the shapes of its forward passes."""
    passes, hidden_states = [], decoder.network.hidden_states

    def record(ids, **rest):
        passes.append(tuple(ids.shape))
        return hidden_states(ids, **rest)

    monkeypatch.setattr(decoder.network, "hidden_states", record)
    monkeypatch.setattr(scheduler, "make_batch_decoder", lambda *_: decoder)
    return Scheduler(decoder.network, TOKENIZER, 5), passes


def arrive(serving, prompts, tokens=6, **settings):
    handles = [
        Handle(GenerationRequest(tuple(ids), tokens, Sampling(temperature=0.7), seed, **settings))
        for seed, ids in enumerate(prompts)
    ]
    for handle in handles:
        serving.add(handle)
    return handles


def run(serving):
    while serving.has_work:
        serving.step()


def check_texts(handles):
    for seed, handle in enumerate(handles):
        ids = handle.request.ids
        [text] = handle.texts()
        assert text.ids == expected(ids[-1], len(ids) - 1, 6, seed, temperature=0.7)


def test_waiting_prompts_are_prefilled_together(serving):
    serving, passes = serving
    handles = arrive(serving, [[7, 8, 9], [1], [2, 3], [5] * 20, [4, 6]])
    serving.step()
    assert [len(handle.events) for handle in handles] == [1] * 5  # the first step of all
    assert passes == [(5, 20)]
    late = arrive(serving, [[9, 9]])
    run(serving)
    assert passes == [(5, 20), (1, 2)]
    check_texts(handles)
    check_texts(late)


def test_prompts_prefilled_together_have_the_cache_that_they_have_alone(serving):
    serving, _ = serving
    prompts = [[7, 8, 9], [1], [5] * 20]
    arrive(serving, prompts)
    serving.step()
    decoder = serving.decoder
    for slot, ids in enumerate(prompts):
        alone = decoder.prefill(ids)
        alone.run_chunk()
        found = decoder.cache[:, :, slot, :, : len(ids)]
        assert torch.allclose(found, alone.cache.data[:, :, 0], atol=1e-5)


def test_as_many_prompts_are_prefilled_together_as_fit(serving):
    serving, passes = serving
    serving.decoder.chunk_size, serving.decoder.most_together = 8, 16
    arrive(serving, [[1] * 4, [2] * 8, [3] * 4, [4] * 20, [5] * 4], tokens=1)
    serving.step()
    assert passes == [(2, 8)]
    serving.step()
    assert passes[1:] == [(1, 4), (1, 8)]  # and the first chunk of the long prompt
    run(serving)
    assert passes[3:] == [(1, 8), (1, 4), (1, 4)]


def test_prompts_without_a_slot_wait(serving):
    serving, passes = serving
    handles = arrive(serving, [[n] * 4 for n in range(4)], samples=2)
    serving.step()
    assert passes == [(3, 4)]  # the third has one of its two samples
    assert [len(handle.events) for handle in handles] == [2, 2, 1, 0]
    run(serving)
    assert passes == [(3, 4), (1, 4)]
    assert all(handle.done for handle in handles)


def test_prompt_longer_than_the_context_is_prefilled_on_its_own(serving):
    serving, passes = serving
    handles = arrive(serving, [[7, 8], [5] * 170, [9]], tokens=1)
    run(serving)
    assert passes == [(1, 2), (1, 160), (1, 1)]
    assert all(handle.events[-1].finish_reason == "length" for handle in handles)


def test_prompt_that_fails_ends_only_its_own_request(serving, monkeypatch):
    serving, passes = serving
    hidden_states = serving.decoder.network.hidden_states

    def fail(ids, **rest):
        found = hidden_states(ids, **rest)
        if 13 in ids:
            raise RuntimeError("bad luck")
        return found

    monkeypatch.setattr(serving.decoder.network, "hidden_states", fail)
    handles = arrive(serving, [[7, 8], [1, 13], [9]])
    run(serving)
    assert passes == [(3, 2), (1, 2), (1, 2), (1, 1)]
    with pytest.raises(RuntimeError, match="bad luck"):
        handles[1].texts()
    for seed in (0, 2):
        assert len(handles[seed].texts()[0].ids) == 6


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
