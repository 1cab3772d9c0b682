"""A lecture and its stops: at each, one idea, its numbers, what to notice, and a question that can be checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from string import ascii_lowercase
from typing import Any

from clearhead.errors import UserError
from clearhead.finite import finite
from clearhead.labs.lab import Findings, Result, ResultPart
from clearhead.lectures.questions import plain, read_questions

EXACT = 1e-9  # whole numbers
ROUNDED = 0.006  # other numbers: two decimals are enough

StopNumbers = tuple[Findings, list[ResultPart]]  # key figures, and tables or lines


@dataclass(frozen=True)
class Question:
    """A question whose answer is computed: a number or, with options, the index of the correct one."""

    text: str
    answer: Callable[[], float]
    hint: str
    solution: str  # in TeX; {answer} stands for the answer
    options: tuple[str, ...] = ()
    digits: int = 0  # decimals of the answer

    def is_right(self, given: str) -> bool:
        """Whether this is the answer: a number such as 0.5 or 1/2, or the letter of an option or its text."""
        if self.options:
            return self._choice(given.strip()) == self.answer()
        answer = self.answer()
        tolerance = ROUNDED if self.digits else EXACT
        return any(abs(number - answer) <= tolerance for number in parse_number(given))

    @property
    def letters(self) -> str:
        """The letters of the options: abc for three."""
        return ascii_lowercase[: len(self.options)]

    def _choice(self, given: str) -> int:
        if given in self.options:
            return self.options.index(given)
        if len(given) != 1 or given.lower() not in self.letters:
            raise UserError(f"{given!r}: expected a letter from a to {self.letters[-1]}")
        return self.letters.index(given.lower())

    def show_answer(self) -> str:
        answer = self.answer()
        return self.options[int(answer)] if self.options else f"{answer:.{self.digits}f}"

    def show_solution(self) -> str:
        return plain(self.solution.replace("{answer}", self.show_answer()))


def parse_number(given: str) -> list[float]:
    """The numbers that a text may mean: a decimal, a fraction, a percentage, or an integer in groups of three."""
    typed = re.sub(r"\s", "", given).replace("−", "-")
    unit = 100 if typed.endswith("%") else 1
    number = r"[+-]?(?:\d{1,20}(?:[.,]\d{0,20})?|[.,]\d{1,20})"
    readings = []
    if match := re.fullmatch(rf"({number})(?:/({number}))?%?", typed, re.ASCII):
        over, under = (float((part or "1").replace(",", ".")) for part in match.groups())
        readings += [over / under] if under else []
    if re.fullmatch(r"[+-]?\d{1,3}(?:[.,]\d{3})+", typed, re.ASCII):
        readings.append(float(re.sub("[.,]", "", typed)))
    if not readings:
        raise UserError(f"{given!r}: expected a number, such as 0.5 or 1/2")
    return [reading / unit for reading in readings]


@dataclass(frozen=True)
class LectureStop:
    """One stop. `numbers` computes its result with the library's functions; `notice` may name its findings."""

    id: str
    idea: str
    numbers: Callable[[], StopNumbers]
    notice: str
    answer: Callable[[], float]  # to its question

    @property
    def title(self) -> str:
        return read_questions()[self.id]["title"]

    @property
    def question(self) -> Question:
        texts = read_questions()[self.id]
        return Question(
            plain(texts["question"]),
            self.answer,
            plain(texts["hint"]),
            texts["solution"],
            tuple(plain(option) for option in texts.get("options", [])),
            texts.get("digits", 0),
        )

    def compute(self) -> Result:
        findings, parts = self.numbers()
        return Result(self.id, {}, findings, parts)

    def show_notice(self, result: Result) -> str:
        """What to notice, with the findings in place of `{finding}` or `{finding:.0%}`."""
        return self.notice.format(**result.findings)

    def to_dict(self) -> dict[str, Any]:
        """Everything about the stop, with its computed numbers; non-finite numbers become null."""
        result = self.compute()
        question = {
            "text": self.question.text,
            "options": list(self.question.options),
            "answer": self.question.show_answer(),
            "solution": self.question.show_solution(),
        }
        plain: dict[str, Any] = finite(
            {
                "stop": self.id,
                "title": self.title,
                "idea": self.idea,
                "findings": result.findings,
                "parts": [asdict(part) for part in result.parts],
                "notice": self.show_notice(result),
                "question": question,
            }
        )
        return plain


@dataclass(frozen=True)
class Lecture:
    """A lecture: its stops, numbered from 1."""

    id: str
    title: str
    stops: tuple[LectureStop, ...]

    def stop(self, number: int) -> LectureStop:
        if number not in range(1, len(self.stops) + 1):
            raise UserError(f"lecture {self.id} has no stop {number}: the stops are 1 to {len(self.stops)}")
        return self.stops[number - 1]
