"""Reading metrics while they are being written."""

import json
import os
import time

import pytest

from clearhead.runs.following import Follower


@pytest.fixture
def metrics(tmp_path):
    return tmp_path / "metrics.jsonl"


@pytest.fixture
def follower(tmp_path):
    return Follower(tmp_path)


def line(step, **more):
    return (
        json.dumps({"step": step, "loss": 10 / step, "learning_rate": 1.0, "tokens": 100 * step, **more})
        + "\n"
    )


def write(path, *lines, mode="a"):
    with path.open(mode, encoding="utf-8") as file:
        file.write("".join(lines))


def steps(follower, after=0, most=100):
    follower.look()
    return [each.step for each in follower.after(after, most)]


def test_complete_lines_are_read_once(follower, metrics):
    assert steps(follower) == []
    write(metrics, line(1), line(2), line(3)[:9])
    assert steps(follower) == [1, 2]
    write(metrics, line(3)[9:], "nothing\n", line(4, sample="é", validation=2.5))
    assert steps(follower) == [1, 2, 3, 4]
    assert steps(follower, after=2) == [3, 4]
    last = follower.steps[-1]
    assert (last.sample, last.validation, last.tokens, last.loss) == ("é", 2.5, 400, 2.5)
    assert last.smoothed == pytest.approx(2.5)
    assert last.gradient_norm is None


def test_truncated_and_rewritten_files_are_read_again(follower, metrics):
    write(metrics, *map(line, range(1, 9)))
    assert steps(follower)[-1] == 8
    write(metrics, *map(line, range(1, 5)), mode="w")
    assert steps(follower) == [1, 2, 3, 4]
    # Longer than what was read before, with different content: the change is still detected.
    write(metrics, *(line(step, gradient_norm=1.0) for step in range(1, 12)), mode="w")
    assert steps(follower) == list(range(1, 12))
    assert follower.steps[0].gradient_norm == 1.0
    metrics.unlink()
    assert steps(follower) == []


def test_steps_after_a_rollback_are_returned(follower, metrics):
    write(metrics, *map(line, [1, 2, 3, 4, 5, 3, 4]))
    assert steps(follower, after=3) == [4]
    assert steps(follower) == [1, 2, 3, 4, 5, 3, 4]


def test_downsampling_keeps_validated_steps(follower, metrics):
    write(metrics, *(line(i, **({"validation": 1.0} if i == 77 else {})) for i in range(1, 1001)))
    told = steps(follower, most=10)
    assert (told[0], told[-1], len(told)) == (1, 1000, 11)
    assert 77 in told


def test_speed_is_measured_from_file_modification_times(follower, metrics, monkeypatch):
    write(metrics, line(1))
    follower.look()
    assert follower.tokens_per_second is None
    now = metrics.stat().st_mtime
    monkeypatch.setattr(time, "time", lambda: now)
    os.utime(metrics, (now - 4, now - 4))
    follower._begin()
    follower.look()
    write(metrics, line(2), line(9))
    os.utime(metrics, (now, now))
    follower.look()
    assert follower.tokens_per_second == pytest.approx(200)
    follower.look()
    assert follower.tokens_per_second == pytest.approx(200)
    follower._grew[-1] = (now - 60, 900)
    assert follower.tokens_per_second is None


def test_pauses_do_not_count_as_training_time(follower, metrics, monkeypatch):
    """After resuming a minute later, the speed covers only the steps since then."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    for step, when in enumerate([-63, -62, -61, -1, 0], start=1):
        write(metrics, line(step))
        os.utime(metrics, (now + when, now + when))
        follower.look()
    assert follower.tokens_per_second == pytest.approx(100, rel=0.01)
