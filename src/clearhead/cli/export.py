"""`clearhead export`: write a model in a format that other programs read."""

from __future__ import annotations

from pathlib import Path

import typer

from clearhead.cli.completion import choose
from clearhead.cli.console import out, print_json
from clearhead.cli.options import MODEL


def export(
    model: Path = MODEL,
    to: Path = typer.Argument(..., metavar="OUT", help="Destination: a folder, or a file for gguf."),
    kind: str = typer.Option(
        None,
        "--to",
        help="huggingface (a folder, for transformers, vLLM, …) or gguf (llama.cpp, Ollama). "
        "[default: gguf if OUT ends in .gguf]",
        autocompletion=choose("huggingface", "gguf"),
    ),
    numbers: str = typer.Option(
        None,
        help="Storage of matrices in gguf: F32, F16 or Q8_0. [default: F16]",
        autocompletion=choose("F32", "F16", "Q8_0"),
    ),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Export a model for other programs. Refuses models that they would compute differently, with the reason.

    \b
    For example:
      clearhead export runs/my my.gguf
      clearhead export runs/my my.gguf --numbers Q8_0
      clearhead export smollm2 smollm2-folder --to huggingface
    """
    from clearhead.language_model import load

    load(model, "cpu").export(to, kind, numbers)
    written = sorted(to.glob("*")) if to.is_dir() else [to]
    size = sum(path.stat().st_size for path in written)
    if json:
        print_json(
            {
                "path": str(to),
                "to": "huggingface" if to.is_dir() else "gguf" if to.suffix == ".gguf" else "arpa",
                "files": [path.name for path in written],
                "bytes": size,
            }
        )
    else:
        out.print(f"{to}: {size / 1e6:.1f} MB")
