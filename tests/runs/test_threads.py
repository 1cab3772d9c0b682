"""The number of threads of a timed run."""

import os

import pytest
import torch

from clearhead.runs import threads
from clearhead.runs.threads import (
    TRIAL_STEPS,
    ThreadTrial,
    competing_load,
    describe_load,
    thread_counts,
    using_threads,
)


@pytest.fixture
def machine(monkeypatch):
    """Set the machine's load average and number of cores; our own process has been running for a long time."""

    def set_up(load, cores=4):
        monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
        monkeypatch.setattr(os, "cpu_count", lambda: cores)
        monkeypatch.setattr(threads.time, "process_time", lambda: 600.0)

    return set_up


def run_steps(trial, seconds, steps=30):
    """Take steps that each last `seconds[number of threads]`; return the number of threads of each."""
    used = []
    with using_threads(trial.count):
        for _ in range(steps):
            used.append(torch.get_num_threads())
            trial.note(seconds[used[-1]])
    return used


def test_number_of_threads_is_halved_down_to_one():
    with using_threads(6):
        assert thread_counts() == [6, 3, 1]
    with using_threads(1):
        assert thread_counts() == [1]


def test_number_of_threads_is_restored_after_an_error():
    before = torch.get_num_threads()
    with pytest.raises(RuntimeError), using_threads(before + 1):
        raise RuntimeError
    assert torch.get_num_threads() == before


def test_own_threads_and_idle_cores_do_not_compete(machine):
    machine(load=4.0, cores=4)
    assert competing_load(4) == 0.0
    machine(load=3.0, cores=4)
    assert competing_load(1) == 0.0
    machine(load=6.5, cores=4)
    assert competing_load(4) == pytest.approx(2.5)
    assert competing_load(1) == pytest.approx(2.5)


def test_young_process_does_not_count_as_load(machine, monkeypatch):
    machine(load=3.0, cores=2)
    monkeypatch.setattr(threads.time, "process_time", lambda: 6.0)
    assert competing_load(2) == pytest.approx(2.9)


def test_system_without_load_average_is_never_busy(monkeypatch):
    monkeypatch.delattr(os, "getloadavg", raising=False)
    assert competing_load(2) == 0.0
    assert describe_load(2) is None


def test_busy_machine_is_described(machine):
    machine(load=2.0, cores=2)
    assert describe_load(2) is None
    machine(load=5.25, cores=2)
    assert "load 5.2 on 2 cores" in describe_load(2)


def test_idle_machine_keeps_all_threads_without_a_trial(machine):
    machine(load=4.0)
    trial = ThreadTrial(4, [4, 2, 1])
    trial.begin()
    assert run_steps(trial, {4: 1.0, 2: 0.1}) == [4] * 30


def test_busy_machine_gets_fewer_threads_one_trial_after_another(machine):
    machine(load=9.0)
    trial = ThreadTrial(4, [4, 2, 1])
    seconds = {4: 1.0, 2: 0.6, 1: 0.5}
    with using_threads(4):
        trial.begin()
        used = run_steps(trial, seconds)
        assert used[: 2 * (TRIAL_STEPS + 1)] == [4] * (TRIAL_STEPS + 1) + [2] * (TRIAL_STEPS + 1)
        assert set(used[2 * (TRIAL_STEPS + 1) :]) == {2}
        trial.begin()
        run_steps(trial, seconds)
    assert trial.count == 1


def test_threads_return_when_the_machine_is_idle_again(machine):
    machine(load=1.0)
    trial = ThreadTrial(1, [2, 1])
    with using_threads(1):
        trial.begin()
        run_steps(trial, {2: 0.5, 1: 0.9})
    assert trial.count == 2


def test_small_difference_changes_nothing(machine):
    machine(load=9.0)
    trial = ThreadTrial(2, [2, 1])
    with using_threads(2):
        trial.begin()
        assert run_steps(trial, {2: 1.0, 1: 0.95})[-1] == 2
    assert trial.count == 2


def test_first_step_with_another_number_of_threads_is_not_counted(machine):
    machine(load=9.0)
    trial = ThreadTrial(2, [2, 1])
    durations = iter([5.0, 1.0, 1.0, 1.0, 9.0, 0.5, 0.5, 0.5])
    with using_threads(2):
        trial.begin()
        for each in durations:
            trial.note(each)
    assert trial.count == 1
