"""The titles and questions of the stops, from the file that the page is built with, and TeX as plain text."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import TypedDict

SYMBOLS = {
    "alpha": "α",
    "mu": "μ",
    "sigma": "σ",
    "approx": "≈",
    "cdot": "·",
    "times": "×",
    "dots": "…",
    "to": "→",
    "ln": "ln",
}


class StopTexts(TypedDict, total=False):
    """Formulas are in TeX between dollar signs; {answer} stands for the answer in the solution."""

    title: str
    question: str
    options: list[str]
    hint: str
    solution: str
    digits: int  # decimals of the answer, if it is a number


@cache
def read_questions() -> dict[str, StopTexts]:
    texts: dict[str, StopTexts] = json.loads(
        (files("clearhead.lectures") / "questions.json").read_text(encoding="utf-8")
    )
    return texts


def plain(text: str) -> str:
    """A text for the terminal: $\\alpha_{31} = e^2 / \\sqrt{d_k}$ becomes α31 = e^2 / √d_k."""
    return "".join(_plain_formula(part) if i % 2 else part for i, part in enumerate(text.split("$")))


def _plain_formula(tex: str) -> str:
    tex = tex.replace("\\,", " ").replace("^\\top", "ᵀ").replace("\\hat{x}", "x̂")
    tex = re.sub(r"\\sqrt\{([^{}]*)\}", lambda match: "√" + _group(match[1]), tex)
    tex = re.sub(r"\\([a-zA-Z]+)", lambda match: SYMBOLS[match[1]], tex)
    tex = re.sub(r"_(?:(\d)|\{(\d+)\})", lambda match: match[1] or match[2], tex)
    return re.sub(r"([_^])\{([^{}]*)\}", lambda match: match[1] + _group(match[2]), tex)


def _group(tex: str) -> str:
    return tex if re.fullmatch(r"[\w.]+", tex) else f"({tex})"
