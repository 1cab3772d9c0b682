"""The measured speed of a training step."""

import numpy as np
import pytest
import torch

from clearhead.runs import measure
from clearhead.runs.measure import Measure
from clearhead.runs.plan import make_plan
from clearhead.runs.request import TrainingRequest
from clearhead.runs.sizes import list_sizes
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
