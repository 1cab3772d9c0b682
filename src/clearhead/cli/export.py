"""`clearhead export`: write a model in a format that other programs can read."""

from __future__ import annotations

from pathlib import Path

import typer

from clearhead.cli.completion import choose, complete_models
from clearhead.cli.console import out as console
from clearhead.cli.console import print_json
from clearhead.cli.options import MODEL


def export(
    model: Path = MODEL,
    out: Path = typer.Argument(
        ..., metavar="OUT", help="Destination: a folder or a .gguf file; for an n-gram model, an .arpa file."
    ),
    to: str = typer.Option(
        None,
        help="huggingface (a folder, for transformers, vLLM, …) or gguf (llama.cpp, Ollama). "
        "[default: gguf if OUT ends in .gguf]",
        autocompletion=choose("huggingface", "gguf"),
    ),
    numbers: str = typer.Option(
        None,
        help="Data type of the matrices in a GGUF file: F32, F16 or Q8_0. [default: F16]",
        autocompletion=choose("F32", "F16", "Q8_0"),
    ),
    base: Path = typer.Option(
        None,
        help="If MODEL is a LoRA adapter: the model to merge it into. [default: the one that it names]",
        autocompletion=complete_models,
    ),
    json: bool = typer.Option(False, "--json", help="Print the result as JSON."),
) -> None:
    """Export a model for other programs. Rejects models that those programs would compute differently.

    \b
    For example:
      clearhead export runs/my my.gguf
      clearhead export smollm2 smollm2-folder --to huggingface
      clearhead export my-adapter merged --base smollm2
    """
    from clearhead.language_model import load

    load(model, "cpu", base=base).export(out, to, numbers)
    written = sorted(out.glob("*")) if out.is_dir() else [out]
    size = sum(path.stat().st_size for path in written)
    if json:
        print_json(
            {
                "path": str(out),
                "to": "huggingface" if out.is_dir() else "gguf" if out.suffix == ".gguf" else "arpa",
                "files": [path.name for path in written],
                "bytes": size,
            }
        )
    else:
        console.print(f"{out}: {size / 1e6:.1f} MB")
