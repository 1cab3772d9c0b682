"""`clearhead generate`: what a model writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from clearhead.cli.console import print_json, print_text


def generate(
    model: Path = typer.Argument(..., help="A model: its folder, a GGUF file, or a name."),
    prompt: str = typer.Argument(None, help="The text to go on from. [default: the start of a document]"),
    tokens: int = typer.Option(200, help="How many tokens at most."),
    temperature: float = typer.Option(0.8, help="0 always takes the likeliest; above 1 is wild."),
    top_k: int = typer.Option(None, help="Draw from the k likeliest only."),
    top_p: float = typer.Option(None, help="Draw from the likeliest that make up this probability."),
    min_p: float = typer.Option(None, help="Draw from those at least this share as likely as the likeliest."),
    repetition_penalty: float = typer.Option(1.0, help="Above 1 makes words that were used less likely."),
    seed: int = typer.Option(0, help="The same seed gives the same text."),
    stop: list[str] = typer.Option(None, help="End before this text (may be repeated)."),
    samples: int = typer.Option(1, help="How many texts."),
    device: str = typer.Option(None, help="cpu, cuda or mps. [default: the best there is]"),
    json: bool = typer.Option(False, "--json", help="Print the texts as JSON."),
) -> None:
    """Write on from a prompt, as it comes."""
    from clearhead.errors import UserError
    from clearhead.language_model import load

    if prompt == "":
        raise UserError("the prompt is empty: give some text, or none at all to start a document")
    loaded = load(model, device)
    settings: dict[str, Any] = {
        "tokens": tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "seed": seed,
        "stop": stop or (),
    }
    if samples == 1 and not json:
        pieces = loaded.stream(prompt, **settings)
        print_text(prompt or "")
        for piece in pieces:
            print_text(piece)
        print_text("\n")
        return
    texts = loaded.generate(prompt, samples=samples, **settings)
    if json:
        print_json({"prompt": prompt, "texts": texts, **settings})
        return
    for i, text in enumerate(texts):
        print_text(f"--- {i}\n{prompt or ''}{text}\n")
