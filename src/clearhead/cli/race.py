"""`clearhead race`: train an n-gram model, a recurrent network and a transformer on one text for the same time."""

from __future__ import annotations

from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from clearhead.cli.console import err, out, read_texts
from clearhead.cli.options import CSV, DEVICE, FIGURE, JSON, SEED, TEXT, TOKENIZER, VALIDATION, VOCAB
from clearhead.cli.progress import watch
from clearhead.cli.results import check_output, give
from clearhead.cli.tables import print_table
from clearhead.cli.train import read_validation

if TYPE_CHECKING:
    from clearhead.labs.lab import Lines, Result, Table

# Minimum width of a sample column; in a narrower terminal, samples are printed one below the other.
NARROWEST = 20


def race(
    text: list[str] = TEXT,
    minutes: float = typer.Option(1.0, help="Training time per model, in minutes."),
    kind: list[str] = typer.Option(
        None,
        help="A competitor (may be repeated); elman and gru are also available. [default: ngram, lstm, transformer]",
    ),
    model: list[str] = typer.Option(
        None, metavar="MODEL", help="A saved model to compare without training it (may be repeated)."
    ),
    context: int = typer.Option(None, help="Tokens per window. [default: 128]"),
    tokenizer: str = TOKENIZER,
    vocab: int = VOCAB,
    validation: list[str] = VALIDATION,
    prompt: str = typer.Option(
        None, help="Prompt for all models to continue. [default: from the end of the text]"
    ),
    tokens: int = typer.Option(60, help="Tokens to generate with each model."),
    seed: int = SEED,
    device: str = DEVICE,
    figure: str = FIGURE,
    json: bool = JSON,
    csv: bool = CSV,
) -> None:
    """Race an n-gram model, an LSTM and a transformer on one text.

    All train for the same time with the same tokenizer and are evaluated on the end of the text. Nothing is
    saved; to keep a model, use clearhead train --kind.

    \b
    For example:
      clearhead race my.txt --minutes 2
      clearhead race my.txt --kind gru --kind transformer --figure race.svg
    """
    from clearhead.labs.race import RACERS, run
    from clearhead.runs.request import TrainingRequest

    check_output(figure, json, csv)
    request = TrainingRequest(
        minutes=minutes,
        context=context,
        tokenizer=tokenizer,
        vocab=vocab,
        validation=read_validation(validation),
        seed=seed,
        device=device,
    )
    result = run(
        read_texts(text),
        request,
        kind or RACERS,
        model or [],
        prompt,
        tokens,
        watch,
        lambda activity: err.print(f"{activity} …"),
    )
    give(result, figure, json, csv, _show)


def _show(result: Result) -> None:
    from clearhead.labs.race import BY_POSITION, RACE, SAMPLES

    by_position, samples = result.part(BY_POSITION), result.part(SAMPLES)
    _show_standings(result.part(RACE))
    out.print(f"\n{by_position.name}, in {by_position.up}, by {by_position.across}")
    _show_lines(by_position)
    out.print(f"\n{samples.columns[0]}")
    _show_samples(dict(zip(samples.rows, (str(sample) for (sample,) in samples.values), strict=True)))


def _show_standings(table: Table) -> None:
    headings = {name: name for name in ("name", *table.columns)}
    rows = [
        {"name": name, **dict(zip(table.columns, values, strict=True))}
        for name, values in zip(table.rows, table.values, strict=True)
    ]
    for row in rows:
        row["seconds"] = None if row["seconds"] is None else f"{row['seconds']:.1f}"
    print_table(headings, rows)


def _show_lines(part: Lines) -> None:
    width = max(map(len, part.lines))
    out.print(" " * width + "".join(f"{x:>8g}" for x in part.x))
    for name, values in part.lines.items():
        cells = (" " * 8 if value is None else f"{value:8.3f}" for value in values)
        out.print(f"{name:<{width}}" + "".join(cells))


def _show_samples(samples: dict[str, str]) -> None:
    width = out.width // len(samples) - 2
    columns = [
        [name, *wrap(" ".join(sample.split()), max(width, NARROWEST))] for name, sample in samples.items()
    ]
    if width < NARROWEST:
        for column in columns:
            out.print("\n".join([*column, ""]))
        return
    for line in zip_longest(*columns, fillvalue=""):
        out.print("  ".join(f"{cell:<{width}}" for cell in line).rstrip())
