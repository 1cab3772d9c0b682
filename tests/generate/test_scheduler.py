"""The scheduler, step by step: which requests run when, and what they generate."""

import math
from itertools import count, pairwise

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate.batch_decoder import CPU_CHUNK
from clearhead.generate.request import Event, GenerationRequest, Handle
from clearhead.generate.sampler import SampledToken
from clearhead.generate.sampling import Sampling
from clearhead.generate.scheduler import Scheduler
from clearhead.language_model import LanguageModel

GREEDY = Sampling(temperature=0)


@pytest.fixture(scope="module")
def language_model(make, tokenizer):
    return LanguageModel(make(n_context=96), tokenizer)


@pytest.fixture
def scheduler(language_model):
    return Scheduler(language_model.network, language_model.tokenizer, slots=4)


def serve(scheduler: Scheduler, *requests: GenerationRequest) -> list[Handle]:
    handles = [Handle(request) for request in requests]
    for handle in handles:
        scheduler.add(handle)
    while scheduler.has_work:
        scheduler.step()
    return handles


def sampled_ids(handle: Handle, sample: int = 0) -> list[int]:
    return [event.id for event in handle.events if event.sample == sample and event.id is not None]


def plain(language_model, request: GenerationRequest) -> list[str]:
    """Generate the same texts with the plain loop."""
    texts = language_model.generate(
        list(request.ids),
        request.tokens,
        samples=request.samples,
        seed=request.seed,
        stop=request.stop,
        **vars(request.sampling),
    )
    assert isinstance(texts, list)
    return texts


REQUESTS = {
    "one token": GenerationRequest((65,), tokens=20),
    "samples": GenerationRequest((65, 66, 67), tokens=20, samples=3, seed=7),
    "the context fills up": GenerationRequest(tuple(range(90)), tokens=20, samples=2),
    "longer than the context": GenerationRequest(tuple(range(200)), tokens=5, sampling=GREEDY),
    "settings": GenerationRequest(
        (1, 2), tokens=30, sampling=Sampling(1.2, top_k=9, repetition_penalty=1.3), samples=6
    ),
    "stops": GenerationRequest((1, 2), tokens=60, seed=2, stop=("a", "e", "i"), samples=4),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_texts_match_the_plain_loop(scheduler, language_model, kind):
    (handle,) = serve(scheduler, REQUESTS[kind])
    assert handle.texts() == plain(language_model, REQUESTS[kind])


def test_event_ids_match_event_text(scheduler, language_model):
    (handle,) = serve(scheduler, GenerationRequest((104, 105), tokens=30, seed=1))
    assert language_model.tokenizer.decode(sampled_ids(handle)) == "".join(event.text for event in handle)
    assert [event.finish_reason for event in handle] == [None] * 29 + ["length"]


def test_finish_reason_is_reported_for_each_sample(make, tokenizer):
    say = [iter([*b"abc", tokenizer.end_id]), iter(b"abcdefgh"), iter(b"abXYZ")]
    scheduler = Scheduler(
        make(), tokenizer, slots=4, wrap_sampler=lambda _, n, __: lambda ___: SampledToken(next(say[n]))
    )
    (handle,) = serve(scheduler, GenerationRequest((65,), tokens=6, samples=3, stop=("XY",)))
    assert handle.texts() == ["abc", "abcdef", "ab"]
    ends = {event.sample: (event.finish_reason, event.id) for event in handle if event.finish_reason}
    assert ends == {0: ("stop", tokenizer.end_id), 1: ("length", ord("f")), 2: ("stop", ord("Y"))}


def test_prompt_is_prefilled_once_for_all_samples(scheduler):
    read = []
    scheduler.decoder.network.embedding.register_forward_hook(lambda _, ids, out: read.append(ids[0].shape))
    serve(scheduler, GenerationRequest(tuple(range(50)), tokens=3, samples=9))
    pieces = [shape for shape in read if shape[1] > 1]
    assert all(rows == 1 for rows, _ in pieces)
    assert sum(length for _, length in pieces) == 50


def test_long_prompt_is_prefilled_in_chunks_while_others_continue(make, tokenizer):
    scheduler = Scheduler(make(n_context=1000), tokenizer, slots=4)
    short, long = (
        Handle(GenerationRequest((65,), tokens=100)),
        Handle(GenerationRequest((65,) * 900, tokens=2)),
    )
    scheduler.add(short)
    scheduler.step()
    scheduler.add(long)
    grown = []
    while not long.events:
        before = len(short.events)
        scheduler.step()
        grown.append(len(short.events) - before)
    assert grown == [1] * math.ceil(900 / CPU_CHUNK)


def test_sequences_with_a_full_context_alternate_without_blocking_others(make, tokenizer):
    scheduler = Scheduler(make(n_context=4 * CPU_CHUNK), tokenizer, slots=4)
    full = [Handle(GenerationRequest((65 + i,) * 4 * CPU_CHUNK, tokens=5, sampling=GREEDY)) for i in range(2)]
    short = Handle(GenerationRequest((70,), tokens=100))
    for handle in (*full, short):
        scheduler.add(handle)
    while not short.events:
        scheduler.step()
    grown = []
    while not (full[0].done and full[1].done):
        before = len(short.events), [len(handle.events) for handle in full]
        scheduler.step()
        assert len(short.events) == before[0] + 1
        grown.append([len(handle.events) - count for handle, count in zip(full, before[1], strict=True)])
    assert [sum(both) for both in grown[:8]].count(1) == 2  # a window is four chunks, one chunk per step
    order = [both.index(1) for both in grown if any(both)]
    assert all(one != other for one, other in pairwise(order[:6]))


def test_requests_start_in_order_of_arrival(scheduler):
    """Ten requests on four slots: none starts before an earlier one."""
    begun = []
    handles = [
        Handle(
            GenerationRequest((65,), tokens=3 + i % 4, samples=1 + i % 3),
            lambda event, i=i: begun.append((i, event)),
        )
        for i in range(10)
    ]
    for handle in handles:
        scheduler.add(handle)
    while scheduler.has_work:
        scheduler.step()
        assert len(scheduler.running) <= 4
    order = list(dict.fromkeys((i, event.sample) for i, event in begun))
    assert order == [(i, sample) for i in range(10) for sample in range(1 + i % 3)]


def test_more_samples_than_slots_are_all_generated(scheduler, language_model):
    request = GenerationRequest((65, 66), tokens=5, samples=11)
    (handle,) = serve(scheduler, request)
    assert handle.texts() == plain(language_model, request)


def test_error_ends_only_its_own_request(language_model):
    def draw_or_fail(request, number, draw):
        drawn = count()

        def failing(logits):
            if request.seed == 13 and number == 1 and next(drawn) == 4:
                raise RuntimeError("bad luck")
            return draw(logits)

        return failing

    scheduler = Scheduler(
        language_model.network, language_model.tokenizer, slots=4, wrap_sampler=draw_or_fail
    )
    good, bad = (
        GenerationRequest((65, 66), tokens=20, seed=1, samples=2),
        GenerationRequest((65, 66), tokens=20, seed=13, samples=3),
    )
    handles = serve(scheduler, good, bad, good)
    assert handles[0].texts() == handles[2].texts() == plain(language_model, good)
    assert [event.finish_reason for event in handles[1].events if event.finish_reason] == ["error"] * 3
    with pytest.raises(RuntimeError, match="bad luck"):
        handles[1].texts()
    assert not scheduler.running


def test_sampler_that_fails_to_start_ends_only_its_own_request(language_model):
    def refuse(request, _, draw):
        if request.seed == 13:
            raise UserError("not with me")
        return draw

    scheduler = Scheduler(language_model.network, language_model.tokenizer, slots=2, wrap_sampler=refuse)
    good, bad = serve(
        scheduler, GenerationRequest((65,), tokens=5), GenerationRequest((65,), tokens=5, seed=13, samples=5)
    )
    assert good.events[-1].finish_reason == "length"
    assert [event.finish_reason for event in bad.events] == ["error"] * 5


def test_non_finite_logits_end_only_their_own_sequence(make, tokenizer):
    """Token 66 overflows: a request that contains it fails, and the slot's next sequence is unaffected."""
    network = make(n_context=96, tied=False)
    network.embedding.weight.data[66] = math.inf
    request = GenerationRequest((65,), tokens=10, seed=3)
    expected = serve(Scheduler(network, tokenizer, slots=1), request)[0].events
    assert [event.finish_reason for event in expected] == [None] * 9 + ["length"]
    scheduler = Scheduler(network, tokenizer, slots=1)
    bad, good = serve(scheduler, GenerationRequest((66, 65), tokens=10), request)
    assert bad.events[-1].finish_reason == "error"
    assert good.events == expected


def test_failed_step_ends_its_requests_and_later_ones_still_run(scheduler, language_model):
    request = GenerationRequest((65,), tokens=5)
    first = [Handle(request), Handle(request)]
    for handle in first:
        scheduler.add(handle)
    scheduler.step()
    hook = scheduler.decoder.network.final_norm.register_forward_hook(lambda *_: 1 / 0)
    scheduler.step()
    hook.remove()
    assert [handle.events[-1].finish_reason for handle in first] == ["error", "error"]
    assert serve(scheduler, request)[0].texts() == plain(language_model, request)


def test_failing_listener_ends_only_its_own_request(scheduler):
    def refuse(event: Event) -> None:
        raise OSError("gone away")

    bad, good = Handle(GenerationRequest((65,), tokens=5), refuse), Handle(GenerationRequest((65,), tokens=5))
    scheduler.add(bad)
    scheduler.add(good)
    while scheduler.has_work:
        scheduler.step()
    assert [event.finish_reason for event in bad.events] == [None, "error"]
    assert len(good.events) == 5


def test_cancel_takes_effect_before_the_next_token(scheduler):
    handles = [Handle(GenerationRequest((65,), tokens=50, stop=("never",))) for _ in range(6)]
    for handle in handles:
        scheduler.add(handle)
    for _ in range(5):
        scheduler.step()
    handles[1].cancel()
    handles[5].cancel()  # has not started
    assert len(scheduler.running) == 4
    counts = [len(handle.events) for handle in handles]
    scheduler.step()
    assert handles[1].events[-1] == Event(0, finish_reason="cancelled", text=handles[1].events[-1].text)
    assert handles[5].events == [Event(0, finish_reason="cancelled")]
    assert len(handles[0].events) == counts[0] + 1
    assert len(handles[4].events) > 0  # took the free slot
    assert scheduler.running[1].handle is handles[4]


def test_held_back_text_is_emitted_at_the_end(make, tokenizer):
    """The start of a stop string is held back; if the request ends there, it is emitted as text."""
    scheduler = Scheduler(
        make(), tokenizer, slots=1, wrap_sampler=lambda *_: lambda __: SampledToken(ord("x"))
    )
    handle = Handle(GenerationRequest((65,), tokens=50, stop=("xxxxxxxxy",)))
    scheduler.add(handle)
    for _ in range(4):
        scheduler.step()
    assert handle.events
    assert all(event.text == "" for event in handle.events)
    handle.cancel()
    scheduler.step()
    assert handle.texts() == ["x" * (len(handle.events) - 1)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ids": ()}, "the prompt is empty"),
        *(
            ({"tokens": bad}, "tokens = .*expected an integer of at least 1")
            for bad in (0, -1, 1.5, True, None, "9")
        ),
        ({"seed": -1}, "seed = -1"),
        ({"samples": 0}, "samples = 0"),
        ({"samples": 10**9}, "samples = 1000000000"),
        *(
            ({"seconds": bad}, "seconds = .*expected a finite number above 0")
            for bad in (0, -1, math.nan, math.inf, True, "9")
        ),
    ],
)
def test_invalid_requests_are_rejected(settings, message):
    with pytest.raises(UserError, match=message):
        GenerationRequest(**{"ids": (1,), **settings})


def test_unknown_ids_are_rejected(scheduler):
    with pytest.raises(UserError, match="id 257 does not exist"):
        scheduler.add(Handle(GenerationRequest((1, 257))))
    assert not scheduler.has_work


@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no CUDA GPU")
def test_texts_match_the_plain_loop_on_cuda(make, tokenizer):
    model = LanguageModel(make(n_context=96).to("cuda"), tokenizer)
    request = GenerationRequest(tuple(range(60)), tokens=50, sampling=GREEDY)
    (handle,) = serve(Scheduler(model.network, tokenizer, slots=4), request)
    assert handle.texts() == plain(model, request)
