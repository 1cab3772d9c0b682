"""The measured speed of a training step."""

import numpy as np
import pytest
import torch

from clearhead.networks import make_network
from clearhead.runs import measure
from clearhead.runs import plan as plan_module
from clearhead.runs.measure import Measure
from clearhead.runs.plan import make_plan
from clearhead.runs.request import TrainingRequest
from clearhead.runs.sizes import list_sizes
from clearhead.runs.teachers import Teachers
from clearhead.runs.threads import using_threads
from clearhead.text.tokens import Tokens

CPU = torch.device("cpu")


@pytest.fixture
def tokens():
    return Tokens.of(np.arange(20_000, dtype=np.int64) % 64)


@pytest.fixture
def speeds(monkeypatch):
    """Set the seconds of a step for each number of threads."""

    def set_up(seconds):
        monkeypatch.setattr(measure, "_typical_seconds", lambda work: seconds[torch.get_num_threads()])

    return set_up


def take(tokens):
    request = TrainingRequest(batch=8)
    with using_threads(4):
        return Measure.take(request, list_sizes(request, tokens, 64)[0], tokens, CPU, 60.0)


def test_fewer_threads_are_used_if_they_are_faster(tokens, speeds):
    speeds({4: 1.0, 2: 0.6, 1: 0.4})
    assert take(tokens).threads == 1
    speeds({4: 1.0, 2: 0.6, 1: 0.58})
    assert take(tokens).threads == 2


def test_quick_measurement_tries_one_batch_and_all_threads(tokens, speeds):
    speeds({4: 1.0, 2: 0.1, 1: 1.0})
    request, rows = TrainingRequest(), []
    config = list_sizes(request, tokens, 64)[0]
    for quick in (True, False):
        with using_threads(4):
            taken = Measure.take(request, config, tokens, CPU, 1e6, quick=quick)
        rows.append(taken.rows)
        assert taken.threads == (4 if quick else 2)
    assert rows[0] < rows[1]


def test_all_threads_are_used_unless_fewer_are_clearly_faster(tokens, speeds):
    speeds({4: 1.0, 2: 0.95, 1: 0.1})
    assert take(tokens).threads == 4


def test_plan_of_a_timed_run_records_the_number_of_threads(tokens, speeds):
    speeds({4: 0.02, 2: 0.02, 1: 0.02})
    with using_threads(4):
        plan = make_plan(TrainingRequest(batch=8, minutes=1), tokens, 1000, 64, CPU, 60.0)
        assert plan.threads == 4
        assert torch.get_num_threads() == 4
    assert make_plan(TrainingRequest(batch=8, steps=5), tokens, 1000, 64, CPU, None).threads is None


def test_cpu_with_matrix_units_gets_a_larger_model(monkeypatch):
    sizes = []
    for has_units in (False, True):
        config = plan_for(65, 1_000_000, monkeypatch, seconds_per_token=6e-5, has_units=has_units)
        sizes.append((config.n_block, config.d_model))
    assert sizes == [(4, 64), (4, 96)]


def plan_for(
    n_vocab,
    n_tokens,
    monkeypatch,
    seconds_per_token=1e-6,
    device=CPU,
    has_units=False,
    separator=None,
    **settings,
):
    """Plan two minutes on a machine on which every size takes the same time per token."""
    monkeypatch.setattr(plan_module, "has_fast_bfloat16", lambda device: has_units)
    monkeypatch.setattr(
        plan_module.Measure,
        "take",
        lambda request, **settings: Measure(8, seconds_per_token, 1e-7, False, 1),
    )
    tokens = Tokens.of(np.zeros(n_tokens, dtype=np.int64), separator=separator)
    return make_plan(TrainingRequest(minutes=2, **settings), tokens, 1000, n_vocab, device, 120.0).config


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_text_repeated_often_gets_a_small_model(monkeypatch, device):
    for n_tokens, size in ((208_000, (4, 64)), (338_000, (4, 96)), (591_000, (4, 128))):
        config = plan_for(4096, n_tokens, monkeypatch, device=torch.device(device))
        assert (config.n_block, config.d_model) == size


def test_characters_and_texts_repeated_rarely_get_a_larger_model(monkeypatch):
    assert plan_for(65, 208_000, monkeypatch).d_model > 64
    assert plan_for(4096, 5_000_000, monkeypatch).d_model > 128


@pytest.mark.parametrize(
    ("settings", "context"),
    [
        ({"seconds_per_token": 6e-5, "n_tokens": 500_000}, 128),  # batches of few windows
        ({"seconds_per_token": 2e-5}, 256),
        ({"seconds_per_token": 1e-5}, 512),
        ({"seconds_per_token": 1e-7}, 512),
        ({"seconds_per_token": 1e-7, "device": "cuda"}, 1024),
        ({"seconds_per_token": 1e-5, "n_tokens": 10_000_000}, 128),  # read only once
        ({"tokenizer": "byte"}, 128),
        ({"n_tokens": 3000}, 256),  # an eighth of the text
        ({"preset": "lecture"}, 128),  # learned positions
        ({"context": 64}, 64),
        ({"separator": 0}, 128),  # documents
    ],
)
def test_characters_get_a_longer_context_if_there_is_time(monkeypatch, settings, context):
    settings = {
        "n_vocab": 65,
        "n_tokens": 1_000_000,
        "seconds_per_token": 1e-5,
        "tokenizer": "char",
        **settings,
    }
    device = torch.device(settings.pop("device", "cpu"))
    config = plan_for(monkeypatch=monkeypatch, blocks=4, width=64, device=device, **settings)
    assert config.n_context == context


@pytest.mark.parametrize(("own", "context"), [(True, 1024), (False, 256)])
def test_student_shares_the_whole_context_of_its_own_teachers(own, context, tokens):
    teachers = Teachers((), None, 1024, None, ())
    request = TrainingRequest(minutes=2, teachers=4 if own else None)
    assert plan_module._like_teachers(request, teachers, tokens).context == context


@pytest.mark.parametrize(
    ("device", "n_tokens", "batches"),
    [("cpu", 500_000, [2165, 4330]), ("cpu", 10**7, [2500, 10_000]), ("cuda", 500_000, [2500, 10_000])],
)
def test_batch_grows_with_the_root_of_the_tokens_if_a_cpu_reads_the_text_several_times(
    device, n_tokens, batches
):
    found = [measure.best_batch(seen, n_tokens, torch.device(device)) for seen in (3e6, 12e6)]
    assert found == pytest.approx(batches, rel=1e-3)
    assert measure.best_batch(-1e6, n_tokens, torch.device(device)) <= 0  # when the time is up


@pytest.mark.parametrize("taught", [True, False])
def test_batch_of_a_student_is_limited_by_its_teachers_predictions(taught, tokens, speeds, monkeypatch):
    speeds(dict.fromkeys(range(1, 65), 1e-4))
    request = TrainingRequest()
    config = list_sizes(request, tokens, 64)[0]
    monkeypatch.setattr(measure, "MOST_PREDICTED", 2 * config.n_context * config.n_vocab)
    teachers = [make_network(config).eval()] if taught else []
    rows = Measure.take(request, config, tokens, CPU, 60.0, teachers).rows
    assert rows == 2 if taught else rows > 8
