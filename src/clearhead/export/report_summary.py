"""A report's main measures: as tiles for one model, and as a table for several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

import numpy as np

from clearhead.evaluation.model_report import ModelReport
from clearhead.export.report_parts import inline, table
from clearhead.summary_table import TableCell

COMPARED = (
    "The best figure in a row is bold. Loss, perplexity and the next token are comparable only between models with the "
    "same tokenizer."
)
EQUALLY_LIKELY = "the loss as a number of equally likely tokens"


@dataclass(frozen=True)
class KeyFigure:
    name: str
    shown: str
    note: str = ""
    value: float | None = None
    better: Literal["low", "high"] | None = None
    per_token: bool = False  # comparable only between models with the same tokens


def key_figures(report: ModelReport) -> list[KeyFigure]:
    losses, right = report.losses, report.calibration.accuracy
    error, bits = report.calibration.expected_error, report.bits_per_byte
    perplexity = f"{math.exp(losses.loss):,.2f}" if losses.loss < 700 else "∞"
    measured = f"{len(losses.ids):,} tokens measured"
    found = [
        KeyFigure("bits per byte", f"{bits:.4f}", _beside(report), bits, "low"),
        KeyFigure("loss", f"{losses.loss:.4f}", f"nats per token; {measured}", losses.loss, "low", True),
        KeyFigure("perplexity", perplexity, EQUALLY_LIKELY, losses.loss, "low", True),
        KeyFigure("next token right", f"{right:.1%}", "predicted as most likely", right, "high", True),
        KeyFigure("calibration error", f"{error:.1%}", "gap between probability and accuracy", error, "low"),
    ]
    if report.copied is not None and report.copied_by_people is not None:
        share, note = report.copied.share, f"held-out text: {report.copied_by_people.share:.1%}"
        found.append(KeyFigure("copied", f"{share:.1%}", note, share, "low"))
    if report.scores is not None:
        pairs = report.scores.groups[0]
        low, high = pairs.interval
        note = f"95% interval {low:.1%} to {high:.1%}; chance 50%"
        found.append(KeyFigure("minimal pairs right", f"{pairs.accuracy:.1%}", note, pairs.accuracy, "high"))
    if report.evidence is not None:
        verdict = "yes" if report.evidence.overfits else "no"
        found.append(KeyFigure("overfits", verdict, report.evidence.reason))
    return found


def tiles(report: ModelReport) -> str:
    found = key_figures(report)
    tiles = "".join(
        f'<div><dt>{inline(one.name)}</dt><dd class="figure">{inline(one.shown)}</dd>'
        f'<dd class="note">{inline(one.note)}</dd></div>'
        for one in found
    )
    return f'<dl class="tiles{" in-fours" if len(found) > 6 else ""}">{tiles}</dl>'


def side_by_side(reports: Sequence[ModelReport]) -> list[list[TableCell]]:
    """A row for each measure: its name, and its value for each model."""
    found = [{one.name: one.shown for one in key_figures(each)} for each in reports]
    names = dict.fromkeys(name for each in found for name in each)
    return [[name, *(each.get(name, "") for each in found)] for name in names]


def comparison(reports: Sequence[ModelReport]) -> str:
    """The measures of several models side by side, with the best of each emphasized."""
    headings = ["", *(each.model for each in reports)]
    return table(COMPARED, headings, side_by_side(reports), best_columns(reports))


def best_columns(reports: Sequence[ModelReport]) -> list[int | None]:
    """For each row of `side_by_side`, the column of the best measure; None if there is none, or several look equal."""
    first, *others = reports
    same_tokens = all(np.array_equal(first.losses.ids, each.losses.ids) for each in others)
    found = [{one.name: one for one in key_figures(each)} for each in reports]
    return [_best([each.get(str(name)) for each in found], same_tokens) for name, *_ in side_by_side(reports)]


def _best(row: Sequence[KeyFigure | None], same_tokens: bool) -> int | None:
    """The column of the best measure, counted from 1."""
    known = [
        (each.value, each.shown, i)
        for i, each in enumerate(row, start=1)
        if each is not None and each.better and each.value is not None and (same_tokens or not each.per_token)
    ]
    if len(known) < 2:
        return None
    low = any(each is not None and each.better == "low" for each in row)
    first, second, *_ = sorted(known, key=itemgetter(0), reverse=not low)
    return None if first[1] == second[1] else first[2]


def _beside(report: ModelReport) -> str:
    others = {each.name: each.bits_per_byte for each in report.baselines} | report.compressed
    return ", ".join(f"{name} {bits:.3f}" for name, bits in others.items())
