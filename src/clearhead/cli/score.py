"""`clearhead score`: how often a model considers the right one of several texts the most likely."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from clearhead.cli.console import err, out, plural, print_json
from clearhead.cli.options import DEVICE, MODEL, QUANTIZE
from clearhead.cli.progress import live_line


def score(
    model: Path = MODEL,
    file: list[str] = typer.Argument(
        None,
        metavar="FILE",
        help="Files of items: JSONL, CSV or TSV, or - for standard input. [default: minimal pairs from the stories]",
    ),
    category: str = typer.Option("category", help="The field that names an item's category."),
    delimiter: str = typer.Option(
        " ", help="The string between a context and the text after it. [default: a space]", show_default=False
    ),
    pairs: int = typer.Option(None, help="Minimal pairs per category, if no file is given. [default: 100]"),
    save: str = typer.Option(None, metavar="FILE", help="Also write the items to this new JSONL file."),
    device: str = DEVICE,
    quantize: str = QUANTIZE,
    json: bool = typer.Option(False, "--json", help="Print the figures and each item's scores as JSON."),
) -> None:
    """Score a model on sentence pairs, questions and clozes.

    A row with the fields good and bad is a pair; with context, choices and answer, a question; with context
    and target, a cloze. A tie counts as wrong. Items that are longer than the model's context are left out.

    \b
    For example:
      clearhead score stories
      clearhead score runs/my pairs.jsonl questions.csv
      clearhead score smollm2 blimp.jsonl --category UID --json
    """
    from clearhead.errors import UserError
    from clearhead.evaluation.item_file import read_items, write_items
    from clearhead.evaluation.minimal_pairs import PAIRS, minimal_pairs
    from clearhead.evaluation.scores import readable_items
    from clearhead.evaluation.scores import score as score_items
    from clearhead.language_model import load

    if file and pairs is not None:
        raise UserError("--pairs applies to the minimal pairs from the stories: omit it, or the files")
    if file:
        items = read_items(file, category, sys.stdin.buffer)
    else:
        items = minimal_pairs(pairs=PAIRS if pairs is None else pairs)
    if save is not None:
        write_items(Path(save), items)
    loaded = load(model, device, quantize=quantize)
    if not file:
        every, items = len(items), readable_items(loaded, items, delimiter)
        if len(items) < every:
            err.print(
                f"clearhead: {plural(every - len(items), 'pair')} of {every:,} left out: {loaded.name} lacks a "
                "character that they contain, or they are longer than its context"
            )
    with live_line() as show:
        scores = score_items(
            loaded,
            items,
            delimiter=delimiter,
            report=lambda done, total: show(f"{done:,} of {total:,} texts", False),
        )
    if scores.truncated:
        err.print(
            f"clearhead: the context of {plural(scores.truncated, 'item')} was truncated at its start to fit the "
            f"model's {loaded.config.n_context:,} tokens"
        )
    if json:
        print_json(scores.to_dict())
    else:
        out.print(scores.table())
