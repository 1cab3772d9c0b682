"""A report's figures: how well the models predict, by position, frequency and confidence."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.evaluation.baselines import compression_note
from clearhead.evaluation.model_report import ModelReport
from clearhead.evaluation.run_summary import RunSummary
from clearhead.evaluation.token_losses import FrequencyLoss
from clearhead.export.report_charts import Axis, BarGroup, Series, bar_chart, line_chart
from clearhead.export.report_parts import OTHER, ROLES, figure, table
from clearhead.summary_table import TableCell

LONG = 1000  # steps; beyond this, the axis is logarithmic

ModelReports = Sequence[ModelReport]


def percent(share: float) -> str:
    return f"{share:.0%}"


def count(number: float) -> str:
    return f"{number:,.0f}" if number < 10_000 else f"{number / 1000:,.0f}k"


def labels(reports: ModelReports) -> list[tuple[str, str]]:
    """The name and role of each model."""
    return [(each.model, role) for each, role in zip(reports, ROLES, strict=False)]


def beside_others(reports: ModelReports) -> str:
    """Bits per byte of the models, and of others on the same text."""
    groups: list[BarGroup] = []
    rows: list[list[TableCell]] = []
    for (name, role), each in zip(labels(reports), reports, strict=True):
        groups.append((name, [(role, each.bits_per_byte)]))
        rows.append([name, each.bits_per_byte, each.shape])
    own = [
        [(one.name, f"{one.bits_per_byte:.4f}", one.about) for one in each.baselines if one.own]
        for each in reports
    ]
    differ = any(each != own[0] for each in own)
    for (name, _), each in zip(labels(reports), reports, strict=True):
        for other in each.baselines:
            called = f"{other.name} of {name}" if other.own and differ else other.name
            if called not in [label for label, _ in groups]:
                groups.append((called, [(OTHER, other.bits_per_byte)]))
                rows.append([called, other.bits_per_byte, other.about])
    for program, bits in reports[0].compressed.items():
        groups.append((program, [(OTHER, bits)]))
        rows.append([program, bits, "compresses the text alone"])
    about = "Lower is better. Bits per byte can be compared across tokenizers and with the size of the compressed text."
    about = " ".join(filter(None, (about, compression_note(reports[0].bytes))))
    picture = bar_chart("Bits per byte of the text", groups, "{:.3f}".format)
    return figure(
        "Bits per byte", about, picture, table("Bits per byte", ["", "bits per byte", "about"], rows)
    )


def by_position(reports: ModelReports) -> str:
    unit = "nats per token" if len(reports) == 1 else "bits per byte"  # comparable across tokenizers
    lines = []
    for (name, role), each in zip(labels(reports), reports, strict=True):
        scale = 1.0 if len(reports) == 1 else each.bits_per_byte / each.losses.loss
        lines.append(Series(name, role, [(x, scale * y) for x, y in each.losses.by_position()]))
    across = Axis("tokens read so far in the window", logarithmic=True, show=count)
    picture = line_chart("Loss by position in the window", lines, across, Axis(unit))
    rows: list[list[TableCell]] = [[line.name, f"{x:,g}", y] for line in lines for x, y in line.points]
    numbers = table("Loss by position", ["", "tokens read", unit], rows)
    about = "The loss falls for as long as more context helps the model."
    return figure("Loss by position", about, picture, numbers, labels(reports))


def by_frequency(reports: ModelReports) -> str:
    """The loss of the tokens in each group of frequencies."""
    groups: dict[str, list[tuple[str, float]]] = {}
    rows: list[list[TableCell]] = []
    for (name, role), each in zip(labels(reports), reports, strict=True):
        for group in each.by_frequency:
            groups.setdefault(_range(group), []).append((role, group.loss))
            rows.append([name, _range(group), group.tokens, group.loss])
    ordered = sorted(groups.items(), key=lambda each: int(each[0].split(" ")[0].replace(",", "")))
    where = "the training text" if all(each.counted_in_training for each in reports) else "this text"
    picture = bar_chart("Loss by token frequency", ordered, "{:.2f}".format)
    about = f"Nats per token, by the number of times that the token occurs in {where}.{_note(reports)}"
    numbers = table("Loss by token frequency", ["", "occurrences", "tokens measured", "nats per token"], rows)
    return figure("Loss by token frequency", about, picture, numbers, labels(reports))


def _note(reports: ModelReports) -> str:
    return " Comparable only between models with the same tokenizer." if len(reports) > 1 else ""


def _range(group: FrequencyLoss) -> str:
    if group.most is None:
        return f"{group.least:,} or more"
    return f"{group.least:,}" if group.least == group.most else f"{group.least:,} to {group.most:,}"


def calibration(reports: ModelReports) -> str:
    lines = []
    rows: list[list[TableCell]] = []
    for (name, role), each in zip(labels(reports), reports, strict=True):
        bins = each.calibration.bins
        lines.append(Series(name, role, [(one.confidence, one.accuracy) for one in bins]))
        rows += [
            [name, f"{one.low:.0%} to {one.high:.0%}", one.predictions, f"{one.confidence:.1%}", f"{one.accuracy:.1%}"]
            for one in bins
        ]  # fmt: skip
    picture = line_chart(
        "Calibration",
        lines,
        Axis("probability of the most likely token", (0.0, 1.0), show=percent),
        Axis("how often it is right", (0.0, 1.0), show=percent),
        diagonal=True,
    )
    about = (
        "On the dashed line, the most likely token is right as often as its probability says; below it, the model is "
        "overconfident."
    )
    headings = ["", "probability", "predictions", "mean probability", "right"]
    return figure("Calibration", about, picture, table("Calibration", headings, rows), labels(reports))


def copied(reports: ModelReports) -> str:
    """The copied share of what the models write, and of what people wrote."""
    groups: list[BarGroup] = []
    rows: list[list[TableCell]] = []
    for (name, role), each in zip(labels(reports), reports, strict=True):
        if each.copied is None or each.copied_by_people is None:
            continue
        for who, kind, found in (
            (name, role, each.copied),
            (
                "held-out text" if len(reports) == 1 else f"held-out text ({name})",
                OTHER,
                each.copied_by_people,
            ),
        ):
            groups.append((who, [(kind, found.share)]))
            rows.append([who, f"{found.share:.1%}", found.tokens, found.n, found.longest])
    if not groups:
        return ""
    picture = bar_chart("Share of copied tokens", groups, "{:.1%}".format)
    about = (
        "Tokens in passages of about 50 bytes or more that also occur, token for token, in the training text."
    )
    headings = ["", "copied", "tokens", "tokens needed to count as copied", "tokens in the longest passage"]
    return figure("Copied from the training text", about, picture, table("Copied text", headings, rows))


def loss_curve(reports: ModelReports) -> str:
    """The training and validation losses of the models that are runs."""
    lines = []
    runs = [(name, role, each.run) for (name, role), each in zip(labels(reports), reports, strict=True)]
    for name, role, run in runs:
        if run is None or not run.training:
            continue
        lines.append(Series(f"{name}, training", f"{role} faint", run.training, dots=False))
        if run.validation:
            lines.append(Series(f"{name}, validation", role, run.validation))
    if not lines:
        return ""
    long = max(step for line in lines for step, _ in line.points) > LONG
    across = Axis("steps", logarithmic=long, show=count)
    picture = line_chart("Loss by training step", lines, across, Axis("nats per token"))
    rows = [row for name, _, run in runs if run is not None for row in _validations(name, run)]
    return figure(
        "The run's loss",
        f"The smoothed training loss and the validation loss, in nats per token.{_note(reports)}",
        picture,
        table("Validation loss", ["", "step", "validation loss"], rows),
        [(line.name, line.role) for line in lines],
    )


def _validations(name: str, run: RunSummary) -> list[list[TableCell]]:
    return [[name, step, loss] for step, loss in run.validation]
