"""The loss curve of a run."""

import math
import warnings

import pytest

from clearhead.runs.loss_curve import MOST_POINTS, loss_curve


def records(count, every=10):
    for step in range(1, count + 1):
        line = {"step": step, "loss": 3 / step}
        yield {**line, "validation": 2 / step} if step % every == 0 else line


def lines(figure):
    return {line.get_label(): line.get_xydata() for line in figure.canvas.axes[0].get_lines()}


def test_losses_are_plotted_at_their_steps():
    drawn = lines(loss_curve(list(records(30))))
    assert drawn["validation"].tolist() == [[10, 0.2], [20, 0.1], [30, pytest.approx(2 / 30)]]
    training = drawn["training, smoothed"]
    assert training.shape == (30, 2)
    assert training[0].tolist() == [1, 3.0]
    assert training[4].tolist() == [5, pytest.approx(0.2 * 3 / 4 + 0.8 * 3 / 5)]  # the mean of 5/4 values


def test_long_runs_use_a_log_scale_and_fewer_points():
    short, long = (loss_curve(list(records(count))) for count in (1000, 20_000))
    assert short.canvas.axes[0].get_xscale() == "linear"
    assert long.canvas.axes[0].get_xscale() == "log"
    drawn = lines(long)["training, smoothed"]
    assert len(drawn) <= MOST_POINTS
    assert (drawn[0, 0], drawn[-1, 0]) == (1, 20_000)


@pytest.mark.parametrize(
    "metrics", [[], [{"step": 1}], [{"step": 1, "loss": None}, {"step": 2, "loss": math.inf}]]
)
def test_empty_metrics_draw_without_warnings(metrics):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "nats per token" in loss_curve(metrics)._repr_svg_()
