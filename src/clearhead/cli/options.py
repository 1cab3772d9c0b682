"""Arguments and options that mean the same in several commands."""

from __future__ import annotations

from typing import Any

import typer

from clearhead.cli.completion import choose, complete_models

MODEL: Any = typer.Argument(
    ..., metavar="MODEL", help="A model: its folder, a GGUF file, or a name.", autocompletion=complete_models
)
TEXT: Any = typer.Argument(
    ..., metavar="TEXT", help="Files, folders, patterns, or - for standard input; .gz and .xz too."
)
TOKENIZER: Any = typer.Option(
    None, help="char, byte, bpe or word.", autocompletion=choose("char", "byte", "bpe", "word")
)
VOCAB: Any = typer.Option(None, help="Tokens of a bpe or word tokenizer.")
VALIDATION: Any = typer.Option(
    None, help="A share of the text's end, such as 0.1, or files of their own (may be repeated)."
)
SEED: Any = typer.Option(0, help="The same seed gives the same batches and first weights.")
DEVICE: Any = typer.Option(
    None, help="cpu, cuda or mps. [default: the best there is]", autocompletion=choose("cpu", "cuda", "mps")
)
QUANTIZE: Any = typer.Option(
    None,
    metavar="int8",
    help="Matrices in eight bits: faster on a CPU, a little less exact. [default: none]",
    autocompletion=choose("int8", "none"),
)
FIGURE: Any = typer.Option(None, help="Save a picture: a name that ends in .svg, .png or .pdf.")
JSON: Any = typer.Option(False, "--json", help="Print everything as JSON.")
CSV: Any = typer.Option(False, "--csv", help="Print everything as CSV, a number a line.")
