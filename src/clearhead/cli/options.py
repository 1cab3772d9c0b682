"""Arguments and options shared by several commands."""

from __future__ import annotations

from typing import Any

import typer

from clearhead.cli.completion import choose, complete_models
from clearhead.generate.sampling import OPTIONS

MODEL: Any = typer.Argument(
    ...,
    metavar="MODEL",
    help="A model: a folder, a GGUF file, or the name of a pulled model.",
    autocompletion=complete_models,
)
TEXT: Any = typer.Argument(
    ..., metavar="TEXT", help="Files, folders, glob patterns, or - for standard input; .gz and .xz too."
)
TOKENIZER: Any = typer.Option(
    None, help="char, byte, bpe or word.", autocompletion=choose("char", "byte", "bpe", "word")
)
VOCAB: Any = typer.Option(None, help="Vocabulary size of a bpe or word tokenizer.")
VALIDATION: Any = typer.Option(
    None,
    help="Fraction of the text to hold out from its end, such as 0.1, or a separate file (may be repeated).",
)
PRESET: Any = typer.Option(
    "modern",
    help="Transformer preset: lecture, gpt2 or modern.",
    autocompletion=choose("lecture", "gpt2", "modern"),
)
SEED: Any = typer.Option(0, help="Seed for the batches and the initial weights.")
DEVICE: Any = typer.Option(
    None, help="cpu, cuda or mps. [default: the best available]", autocompletion=choose("cpu", "cuda", "mps")
)
QUANTIZE: Any = typer.Option(
    None,
    metavar="int8",
    help="Quantize matrices to int8: faster on a CPU, slightly less accurate. [default: none]",
    autocompletion=choose("int8", "none"),
)
FIGURE: Any = typer.Option(None, metavar="FILE", help="Save a figure to this file: .svg, .png or .pdf.")
JSON: Any = typer.Option(False, "--json", help="Print everything as JSON.")
CSV: Any = typer.Option(False, "--csv", help="Print everything as CSV, one number per line.")


def generation_option(name: str, default: Any = ..., *flags: str, note: str = "", **settings: Any) -> Any:
    """Return the command-line option for a generation option, with its default, help and limits.

    `note` is added in parentheses.
    """
    option = OPTIONS[name]
    notes = "; ".join(filter(None, ("" if option.maximum is None else option.limits, note)))
    text = f"{option.help.removesuffix('.')} ({notes})." if notes else option.help
    return typer.Option(option.default if default is ... else default, *flags, help=text, **settings)
