"""One exercise: its text, each student's data, a solution, and tests.

Code is stored as text, because it is written into notebooks. It runs after `SETUP`, and after the student's data
has been assigned to variables. The answer is a function, which hidden tests call with further inputs, or a variable.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import torch
from torch import Tensor

from clearhead.language_model import LanguageModel, load

SETUP = """\
import torch

import clearhead as ch

model = ch.load("stories")"""


@dataclass(frozen=True)
class Exercise:
    """An exercise on a lecture. `hidden` assigns `cases`, the arguments of further calls, using `random`."""

    name: str
    lecture: str
    title: str
    points: int
    text: str
    asks: str  # the function or variable to define
    draw: Callable[[Random], dict[str, Any]]  # the student's data by variable name
    solution: str
    visible: str
    hidden: str = ""  # empty for a variable, whose value is compared

    @property
    def is_function(self) -> bool:
        return self.solution.startswith("def ")

    @property
    def starter(self) -> str:
        if self.is_function:
            return f"{self.solution.splitlines()[0]}\n    ..."
        return f"{self.asks} = ..."


@dataclass(frozen=True)
class Variant:
    """One exercise with the data of one student, and the seed of the hidden inputs."""

    exercise: Exercise
    data: dict[str, Any]
    hidden_seed: int

    def data_code(self) -> str:
        return "\n".join(f"{name} = {literal(value)}" for name, value in self.data.items())

    def hidden_code(self) -> str:
        """Test code that computes the expected values with the solution, from the data in the notebook."""
        name = self.exercise.asks
        lines = [
            "from clearhead.classroom.answers import same",
            "",
            "",
            "def reference():",
            textwrap.indent(self.exercise.solution, "    "),
            f"    return {name}",
            "",
            "",
        ]
        if self.exercise.is_function:
            lines += [
                "from random import Random",
                "",
                f"random = Random({self.hidden_seed})",
                self.exercise.hidden,
                "for case in cases:",
                f'    assert same({name}(*case), reference()(*case)), "wrong for a hidden input"',
            ]
        else:
            lines.append(f'assert same({name}, reference()), "wrong value"')
        return "\n".join(lines)

    def namespace(self) -> dict[str, Any]:
        """The names that the solution may use."""
        import clearhead

        return {"torch": torch, "ch": clearhead, "model": stories(), **self.data}

    def solve(self) -> Any:
        """Run the solution and return the function or value that it defines."""
        names = self.namespace()
        exec(self.exercise.solution, names)  # noqa: S102 (our own code)
        return names[self.exercise.asks]

    def cases(self) -> list[tuple[Any, ...]]:
        """The arguments of the hidden calls."""
        names = {**self.namespace(), "random": Random(self.hidden_seed)}  # noqa: S311 (not a secret key)
        exec(self.exercise.hidden, names)  # noqa: S102
        return [tuple(case) for case in names["cases"]]


def make_variant(exercise: Exercise, seed: int, student: str) -> Variant:
    """Draw a student's data. The hidden inputs cannot be derived from the data, but both are derived from the seed."""
    data = exercise.draw(Random(_mix(seed, student, exercise.name, "data")))  # noqa: S311
    return Variant(exercise, data, _mix(seed, student, exercise.name, "hidden"))


def _mix(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big")


@cache
def stories() -> LanguageModel:
    """The model that all exercises use."""
    return load("stories", "cpu")


def literal(value: Any) -> str:
    """Python code for a value; tensors are rounded to four decimals."""
    if isinstance(value, Tensor):
        rounded = [
            [round(number, 4) for number in row] if isinstance(row, list) else round(row, 4)
            for row in value.tolist()
        ]
        return f"torch.tensor({rounded})"
    return repr(value)
