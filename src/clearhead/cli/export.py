"""`clearhead export`: a model as other programs read it."""

from __future__ import annotations

from pathlib import Path

import typer

from clearhead.cli.console import out, print_json


def export(
    model: Path = typer.Argument(..., help="A model: its folder, a GGUF file, or a name."),
    to: Path = typer.Argument(..., metavar="OUT", help="Where to: a folder, or a file for gguf."),
    kind: str = typer.Option(
        None,
        "--to",
        help="huggingface (a folder, for transformers, vLLM, …) or gguf (llama.cpp, Ollama). "
        "[default: gguf if OUT ends in .gguf]",
    ),
    numbers: str = typer.Option(
        None, help="For gguf, how matrices are stored: F32, F16 or Q8_0. [default: F16]"
    ),
    json: bool = typer.Option(False, "--json", help="Print what was written as JSON."),
) -> None:
    """Write a model for other programs. What they would compute otherwise is refused, with the reason."""
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
