"""A lab: one of the lectures' experiments. Its description, settings and result."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.summary_table import html_table

Value = float | int | str | None
Findings = dict[str, Value | bool]
Watch = Callable[[], object]  # called between steps; may raise to cancel the lab


@dataclass(frozen=True)
class Setting:
    """A setting. Its type is that of its default."""

    name: str
    default: Any
    description: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    longest: int = 200  # characters
    is_prompt: bool = False  # whether it is a text for the model to read, so that any text can take its place

    @property
    def allowed(self) -> str:
        """The allowed values in words; empty if any value is allowed."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        low, high = self.least, self.most
        if low is None:
            return "" if high is None else f"at most {high:.15g}"
        return f"at least {low:.15g}" if high is None else f"{low:.15g} to {high:.15g}"

    def check(self, given: Any) -> Any:
        kind = type(self.default)
        if kind is float and isinstance(given, int) and not isinstance(given, bool):
            given = float(given)
        if type(given) is not kind:
            raise UserError(f"{self.name} = {given!r}: expected {_kinds[kind]}, such as {self.default!r}")
        if isinstance(given, float) and not math.isfinite(given):
            raise UserError(f"{self.name} = {given}: expected a finite number")
        if isinstance(given, int | float) and not isinstance(given, bool):
            low, high = self.least, self.most
            if (low is not None and given < low) or (high is not None and given > high):
                raise UserError(f"{self.name} = {given}: expected {self.allowed}")
        if self.choices and given not in self.choices:
            raise UserError(f"{self.name} = {given!r}: expected {self.allowed}")
        if isinstance(given, str) and len(given) > self.longest:
            raise UserError(f"`{self.name}` has {len(given)} characters: expected at most {self.longest}")
        return given


@dataclass(frozen=True)
class Table:
    """Numbers or strings in named rows and columns; if `shaded`, the numbers are also drawn as colors."""

    name: str
    rows: list[str]
    columns: list[str]
    values: list[list[Value]]
    shaded: bool = False
    kind: str = "table"

    def cells(self) -> Iterable[tuple[str, str, Value]]:
        for row, line in zip(self.rows, self.values, strict=True):
            for column, value in zip(self.columns, line, strict=True):
                yield row, column, value


@dataclass(frozen=True)
class Lines:
    """A line per name over x, with the range over seeds."""

    name: str
    across: str  # label of x
    up: str  # label of y
    x: list[float]
    lines: dict[str, list[float | None]]
    spread: dict[str, list[tuple[float, float]]] = field(default_factory=dict)  # lowest and highest
    logarithmic: bool = False
    kind: str = "lines"

    def cells(self) -> Iterable[tuple[str, str, Value]]:
        for name, values in self.lines.items():
            for x, value in zip(self.x, values, strict=True):
                yield f"{x:g}", name, value


@dataclass(frozen=True)
class Points:
    """Points on a map, each with a label and a group."""

    name: str
    labels: list[str]
    groups: list[str]
    places: list[tuple[float, float]]
    kind: str = "points"

    def cells(self) -> Iterable[tuple[str, str, Value]]:
        for label, (x, y) in zip(self.labels, self.places, strict=True):
            yield label, "x", x
            yield label, "y", y


ResultPart = Table | Lines | Points


@dataclass(frozen=True, repr=False)
class Result:
    """The result of a lab: its key figures, and the parts that can be drawn."""

    lab: str
    settings: dict[str, Any]
    findings: dict[str, Value | bool]
    parts: list[ResultPart]

    def __repr__(self) -> str:
        findings = "".join(f"\n  {name}: {format_value(value)}" for name, value in self.findings.items())
        return f"Result({self.lab}: {', '.join(part.name for part in self.parts)}){findings}"

    def _repr_html_(self) -> str:
        rows = [(name, format_value(value)) for name, value in self.findings.items()]
        return html_table((), rows, f"Lab {self.lab}: {', '.join(part.name for part in self.parts)}")

    def part(self, name: str) -> Any:
        for part in self.parts:
            if part.name == name:
                return part
        raise UserError(
            f"{self.lab} has no {name!r}: the parts are {', '.join(part.name for part in self.parts)}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data; non-finite numbers become None."""
        plain: dict[str, Any] = finite(asdict(self))
        return plain

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_csv(self) -> str:
        """One row per number: part, row, column, value."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["part", "row", "column", "value"])
        for name, value in self.findings.items():
            writer.writerow(["findings", name, "", value])
        for part in self.parts:
            for row, column, value in part.cells():
                writer.writerow([part.name, row, column, value])
        return out.getvalue()


@dataclass(frozen=True)
class Lab:
    """The description of a lab: name, text, question, settings, and the module that computes it."""

    name: str
    title: str
    description: str
    question: str
    settings: tuple[Setting, ...]
    home: str  # the module whose `run` computes it
    model: str | None = None  # the default model to inspect; None if the lab needs none
    alone: bool = False  # whether the lab also runs without the model
    long: bool = False  # whether the lab trains, which takes seconds to minutes

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all settings, with the given ones validated."""
        known = {setting.name: setting for setting in self.settings}
        for name in given:
            if name not in known:
                there = ", ".join(known) or "none"
                raise UserError(f"{self.name} has no setting {name}: the settings are {there}")
        return {name: known[name].check(given.get(name, known[name].default)) for name in known}


def format_value(value: Value | bool) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    return "" if value is None else str(value)


_kinds: dict[type, str] = {int: "an integer", float: "a number", str: "a string", bool: "true or false"}
