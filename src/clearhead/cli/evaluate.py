"""`clearhead eval`: how well a model knows a text."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from clearhead.cli.console import out, print_json


def evaluate(
    model: Path = typer.Argument(..., help="A model: its folder, a GGUF file, or a name."),
    text: list[str] = typer.Argument(
        ..., metavar="TEXT", help="Files, folders, patterns, or - for standard input; .gz and .xz too."
    ),
    device: str = typer.Option(None, help="cpu, cuda or mps. [default: the best there is]"),
    json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
) -> None:
    """Loss, perplexity and bits per byte, every token counted once."""
    from clearhead.language_model import load
    from clearhead.text.corpus import documents

    evaluation = load(model, device).evaluate(list(documents(text, sys.stdin.buffer)))
    figures = {
        "loss": evaluation.loss,
        "perplexity": evaluation.perplexity,
        "bits_per_byte": evaluation.bits_per_byte,
        "tokens": evaluation.tokens,
        "bytes": evaluation.bytes,
    }
    if json:
        print_json(figures)
        return
    out.print(f"loss            {evaluation.loss:.4f} nats a token")
    out.print(f"perplexity      {evaluation.perplexity:.2f}")
    if evaluation.bits_per_byte is not None:
        out.print(f"bits per byte   {evaluation.bits_per_byte:.4f}")
    out.print(f"over            {evaluation.tokens:,} tokens, {evaluation.bytes:,} bytes")
