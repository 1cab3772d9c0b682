"""`clearhead fill`: fill in the blanks of a text with a bidirectional model."""

from __future__ import annotations

from pathlib import Path

import typer

from clearhead.cli.completion import complete_models
from clearhead.cli.console import out, print_json, read_argument
from clearhead.cli.options import DEVICE
from clearhead.cli.tables import show_token


def fill(
    model: Path = typer.Argument(
        ...,
        metavar="MODEL",
        help="The folder of a model trained with --bidirectional.",
        autocompletion=complete_models,
    ),
    text: str = typer.Argument(
        ..., metavar="TEXT", help="A text with ___ for each missing token, or - for standard input."
    ),
    count: int = typer.Option(5, help="Candidates per blank."),
    device: str = DEVICE,
    json: bool = typer.Option(False, "--json", help="Print the candidates and their probabilities as JSON."),
) -> None:
    """Fill in the blanks of a text with the most likely tokens.

    \b
    For example:
      clearhead train my.txt --bidirectional --out runs/bidirectional
      clearhead fill runs/bidirectional "The duck was too ___ to walk."
    """
    from clearhead.language_model import load

    text = read_argument(text)
    blanks = load(model, device).fill(text, count)
    if json:
        named = [[{"token": token, "probability": p} for token, p in tokens] for tokens in blanks]
        print_json({"text": text, "blanks": named})
        return
    width = max((len(show_token(token)) for tokens in blanks for token, _ in tokens), default=0)
    for i, tokens in enumerate(blanks):
        out.print(f"blank {i}")
        for token, probability in tokens:
            out.print(f"  {show_token(token):<{width}}  {probability:.4f}")
