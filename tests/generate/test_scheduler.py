"""The service, a turn at a time: who is served when, and with what."""

import math
from itertools import count, pairwise

import pytest
import torch

from clearhead.errors import UserError
from clearhead.generate.batch_decoder import PIECE
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
def service(language_model):
    return Scheduler(language_model.network, language_model.tokenizer, slots=4)


def serve(service: Scheduler, *requests: GenerationRequest) -> list[Handle]:
    tickets = [Handle(request) for request in requests]
    for ticket in tickets:
        service.add(ticket)
    while service.busy:
        service.turn()
    return tickets


def words(ticket: Handle, sample: int = 0) -> list[int]:
    return [event.id for event in ticket.events if event.sample == sample and event.id is not None]


def plain(language_model, request: GenerationRequest) -> list[str]:
    """The same from the plain loop."""
    texts = language_model.generate(
        list(request.ids),
        request.tokens,
        samples=request.samples,
        seed=request.seed,
        stop=request.stops,
        **vars(request.sampling),
    )
    assert isinstance(texts, list)
    return texts


REQUESTS = {
    "one word": GenerationRequest((65,), tokens=20),
    "samples": GenerationRequest((65, 66, 67), tokens=20, samples=3, seed=7),
    "the context fills up": GenerationRequest(tuple(range(90)), tokens=20, samples=2),
    "longer than the context": GenerationRequest(tuple(range(200)), tokens=5, sampling=GREEDY),
    "settings": GenerationRequest(
        (1, 2), tokens=30, sampling=Sampling(1.2, top_k=9, repetition_penalty=1.3), samples=6
    ),
    "stops": GenerationRequest((1, 2), tokens=60, seed=2, stops=("a", "e", "i"), samples=4),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_texts_are_those_of_the_plain_loop(service, language_model, kind):
    (ticket,) = serve(service, REQUESTS[kind])
    assert ticket.texts() == plain(language_model, REQUESTS[kind])


def test_the_ids_and_pieces_of_an_event_belong_together(service, language_model):
    (ticket,) = serve(service, GenerationRequest((104, 105), tokens=30, seed=1))
    assert language_model.tokenizer.decode(words(ticket)) == "".join(event.text for event in ticket)
    assert [event.finish for event in ticket] == [None] * 29 + ["length"]


def test_it_says_why_a_text_ended(make, tokenizer):
    say = [iter([*b"abc", tokenizer.end_id]), iter(b"abcdefgh"), iter(b"abXYZ")]
    service = Scheduler(
        make(), tokenizer, slots=4, around=lambda _, n, __: lambda ___: SampledToken(next(say[n]))
    )
    (ticket,) = serve(service, GenerationRequest((65,), tokens=6, samples=3, stops=("XY",)))
    assert ticket.texts() == ["abc", "abcdef", "ab"]
    ends = {event.sample: (event.finish, event.id) for event in ticket if event.finish}
    assert ends == {0: ("stop", tokenizer.end_id), 1: ("length", ord("f")), 2: ("stop", ord("Y"))}


def test_a_prompt_is_read_once_for_all_its_samples(service):
    read = []
    service.decoder.network.embedding.register_forward_hook(lambda _, ids, out: read.append(ids[0].shape))
    serve(service, GenerationRequest(tuple(range(50)), tokens=3, samples=9))
    pieces = [shape for shape in read if shape[1] > 1]
    assert all(rows == 1 for rows, _ in pieces)
    assert sum(length for _, length in pieces) == 50


def test_a_long_prompt_is_read_in_pieces_while_others_go_on(make, tokenizer):
    service = Scheduler(make(n_context=1000), tokenizer, slots=4)
    short, long = (
        Handle(GenerationRequest((65,), tokens=100)),
        Handle(GenerationRequest((65,) * 900, tokens=2)),
    )
    service.add(short)
    service.turn()
    service.add(long)
    grown = []
    while not long.events:
        before = len(short.events)
        service.turn()
        grown.append(len(short.events) - before)
    assert grown == [1] * math.ceil(900 / PIECE)


def test_texts_whose_context_is_full_take_turns_and_hold_nobody_up(make, tokenizer):
    service = Scheduler(make(n_context=4 * PIECE), tokenizer, slots=4)
    full = [Handle(GenerationRequest((65 + i,) * 4 * PIECE, tokens=5, sampling=GREEDY)) for i in range(2)]
    short = Handle(GenerationRequest((70,), tokens=100))
    for ticket in (*full, short):
        service.add(ticket)
    while not short.events:
        service.turn()
    grown = []
    while not (full[0].done and full[1].done):
        before = len(short.events), [len(ticket.events) for ticket in full]
        service.turn()
        assert len(short.events) == before[0] + 1
        grown.append([len(ticket.events) - count for ticket, count in zip(full, before[1], strict=True)])
    assert [sum(both) for both in grown[:8]].count(1) == 2  # a window is four pieces, a piece a turn
    order = [both.index(1) for both in grown if any(both)]
    assert all(one != other for one, other in pairwise(order[:6]))


def test_first_come_first_served(service):
    """Ten requests on four slots: none begins before one that came earlier."""
    begun = []
    tickets = [
        Handle(
            GenerationRequest((65,), tokens=3 + i % 4, samples=1 + i % 3),
            lambda event, i=i: begun.append((i, event)),
        )
        for i in range(10)
    ]
    for ticket in tickets:
        service.add(ticket)
    while service.busy:
        service.turn()
        assert len(service.texts) <= 4
    order = list(dict.fromkeys((i, event.sample) for i, event in begun))
    assert order == [(i, sample) for i in range(10) for sample in range(1 + i % 3)]


def test_more_samples_than_slots_are_all_made(service, language_model):
    request = GenerationRequest((65, 66), tokens=5, samples=11)
    (ticket,) = serve(service, request)
    assert ticket.texts() == plain(language_model, request)


def test_an_error_ends_its_request_alone(language_model):
    def draw_or_fail(request, number, draw):
        drawn = count()

        def failing(logits):
            if request.seed == 13 and number == 1 and next(drawn) == 4:
                raise RuntimeError("bad luck")
            return draw(logits)

        return failing

    service = Scheduler(language_model.network, language_model.tokenizer, slots=4, around=draw_or_fail)
    good, bad = (
        GenerationRequest((65, 66), tokens=20, seed=1, samples=2),
        GenerationRequest((65, 66), tokens=20, seed=13, samples=3),
    )
    tickets = serve(service, good, bad, good)
    assert tickets[0].texts() == tickets[2].texts() == plain(language_model, good)
    assert [event.finish for event in tickets[1].events if event.finish] == ["error"] * 3
    with pytest.raises(RuntimeError, match="bad luck"):
        tickets[1].texts()
    assert not service.texts


def test_a_draw_that_cannot_begin_ends_its_request_alone(language_model):
    def refuse(request, _, draw):
        if request.seed == 13:
            raise UserError("not with me")
        return draw

    service = Scheduler(language_model.network, language_model.tokenizer, slots=2, around=refuse)
    good, bad = serve(
        service, GenerationRequest((65,), tokens=5), GenerationRequest((65,), tokens=5, seed=13, samples=5)
    )
    assert good.events[-1].finish == "length"
    assert [event.finish for event in bad.events] == ["error"] * 5


def test_numbers_that_are_none_end_their_text_and_leave_no_trace(make, tokenizer):
    """Word 66 overflows: whoever has it fails, and the slot's next text is what it would have been."""
    network = make(n_context=96, tied=False)
    network.embedding.weight.data[66] = math.inf
    request = GenerationRequest((65,), tokens=10, seed=3)
    expected = serve(Scheduler(network, tokenizer, slots=1), request)[0].events
    assert [event.finish for event in expected] == [None] * 9 + ["length"]
    service = Scheduler(network, tokenizer, slots=1)
    bad, good = serve(service, GenerationRequest((66, 65), tokens=10), request)
    assert bad.events[-1].finish == "error"
    assert good.events == expected


def test_when_a_step_fails_those_in_it_are_told_and_the_next_are_served(service, language_model):
    request = GenerationRequest((65,), tokens=5)
    first = [Handle(request), Handle(request)]
    for ticket in first:
        service.add(ticket)
    service.turn()
    hook = service.decoder.network.final_norm.register_forward_hook(lambda *_: 1 / 0)
    service.turn()
    hook.remove()
    assert [ticket.events[-1].finish for ticket in first] == ["error", "error"]
    assert serve(service, request)[0].texts() == plain(language_model, request)


def test_what_listens_may_fail(service):
    def refuse(event: Event) -> None:
        raise OSError("gone away")

    bad, good = Handle(GenerationRequest((65,), tokens=5), refuse), Handle(GenerationRequest((65,), tokens=5))
    service.add(bad)
    service.add(good)
    while service.busy:
        service.turn()
    assert [event.finish for event in bad.events] == [None, "error"]
    assert len(good.events) == 5


def test_a_cancelled_request_leaves_before_the_next_word(service):
    tickets = [Handle(GenerationRequest((65,), tokens=50, stops=("never",))) for _ in range(6)]
    for ticket in tickets:
        service.add(ticket)
    for _ in range(5):
        service.turn()
    tickets[1].cancel()
    tickets[5].cancel()  # has not begun
    assert len(service.texts) == 4
    counts = [len(ticket.events) for ticket in tickets]
    service.turn()
    assert tickets[1].events[-1] == Event(0, finish="cancelled", text=tickets[1].events[-1].text)
    assert tickets[5].events == [Event(0, finish="cancelled")]
    assert len(tickets[0].events) == counts[0] + 1
    assert len(tickets[4].events) > 0  # took the place
    assert service.texts[1].ticket is tickets[4]


def test_what_was_held_back_is_given_at_the_end(make, tokenizer):
    """A stop string's beginning is held back; when time is up it is text like any other."""
    service = Scheduler(make(), tokenizer, slots=1, around=lambda *_: lambda __: SampledToken(ord("x")))
    ticket = Handle(GenerationRequest((65,), tokens=50, stops=("xxxxxxxxy",)))
    service.add(ticket)
    for _ in range(4):
        service.turn()
    assert ticket.events
    assert all(event.text == "" for event in ticket.events)
    ticket.cancel()
    service.turn()
    assert ticket.texts() == ["x" * (len(ticket.events) - 1)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ids": ()}, "the prompt is empty"),
        ({"tokens": 0}, "tokens = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"samples": 0}, "samples = 0"),
        ({"samples": 10**9}, "samples = 1000000000"),
        ({"seconds": 0}, "seconds = 0"),
        ({"seconds": math.nan}, "seconds = nan"),
    ],
)
def test_impossible_requests_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        GenerationRequest(**{"ids": (1,), **settings})


def test_ids_that_do_not_exist_are_refused(service):
    with pytest.raises(UserError, match="id 257 does not exist"):
        service.add(Handle(GenerationRequest((1, 257))))
    assert not service.busy


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_on_cuda_texts_are_those_of_the_plain_loop(make, tokenizer):
    model = LanguageModel(make(n_context=96).to("cuda"), tokenizer)
    request = GenerationRequest(tuple(range(60)), tokens=50, sampling=GREEDY)
    (ticket,) = serve(Scheduler(model.network, tokenizer, slots=4), request)
    assert ticket.texts() == plain(model, request)
