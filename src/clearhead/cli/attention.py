"""A head's attention over a sentence, drawn in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

if TYPE_CHECKING:
    from torch import Tensor


def attention_table(tokens: Sequence[str], weights: Tensor, first: int = 0) -> Text:
    """A row for each token that looks, a column for each it can look at: hundredths, the darker the more.

    `first` is the number of the first token shown."""
    shown = [show_token(token) for token in tokens]
    width = max(map(len, shown))
    text = Text(" " * (width + 3))
    for column in range(len(tokens)):
        text.append(f"{first + column:>4}", style="dim")
    for row, (name, line) in enumerate(zip(shown, weights.tolist(), strict=True)):
        text.append(f"\n{first + row:>2} {name:<{width}}")
        for column, weight in enumerate(line):
            text.append(
                f"{100 * weight:4.0f}" if weight > 0 or column <= row else "   ·", style=_shade(weight)
            )
    return text


def show_token(token: str) -> str:
    """Spaces and line breaks made visible, so that a token can be told from its neighbours."""
    return token.replace(" ", "␣").replace("\n", "⏎").replace("\t", "⇥")


def _shade(weight: float) -> str:
    """From the terminal's own background to purple, the colour of attention."""
    if weight < 0.05:
        return "dim"
    red, green, blue = (round(255 + (end - 255) * min(1.0, weight)) for end in (88, 28, 135))
    ink = "white" if weight > 0.45 else "black"
    return f"{ink} on rgb({red},{green},{blue})"
