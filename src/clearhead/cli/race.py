"""`clearhead race`: n-gram, recurrent network and transformer on the same text, for the same minutes."""

from __future__ import annotations

import sys
from itertools import zip_longest
from textwrap import wrap
from typing import TYPE_CHECKING

import typer

from clearhead.cli.console import err, out, print_json
from clearhead.cli.models import print_table
from clearhead.cli.progress import watch
from clearhead.cli.train import read_validation

if TYPE_CHECKING:
    from clearhead.labs.race import Race

HEADINGS = {
    "name": "name",
    "bits_per_byte": "bits per byte",
    "parameters": "parameters",
    "tokens_read": "tokens read",
    "learned": "learned/s",
    "written": "written/s",
}
NARROWEST = 20  # characters of a column of samples; where there is no room for that, they go below each other


def race(
    text: list[str] = typer.Argument(
        ..., metavar="TEXT", help="Files, folders, patterns, or - for standard input; .gz and .xz too."
    ),
    minutes: float = typer.Option(1.0, help="For which each of them trains."),
    kind: list[str] = typer.Option(
        None, help="Who races; elman and gru may too. Can be repeated. [default: ngram, lstm, transformer]"
    ),
    model: list[str] = typer.Option(
        None, help="A saved model that runs beside them as it is (may be repeated)."
    ),
    context: int = typer.Option(None, help="Tokens of a window. [default: 128]"),
    tokenizer: str = typer.Option(None, help="Of all of them: char, byte, bpe or word."),
    vocab: int = typer.Option(None, help="Tokens of a bpe or word tokenizer."),
    validation: list[str] = typer.Option(
        None, help="What all are judged by: a share of the text's end, such as 0.1, or files of their own."
    ),
    prompt: str = typer.Option(None, help="What all write on from. [default: words of the text's end]"),
    tokens: int = typer.Option(60, min=1, max=10_000, help="How many each writes."),
    seed: int = typer.Option(0, help="The same seed gives the same batches and first weights."),
    device: str = typer.Option(None, help="cpu, cuda or mps. [default: the best there is]"),
    figure: str = typer.Option(
        None, help="Save the loss by position as a picture: a name that ends in .svg, .png or .pdf."
    ),
    json: bool = typer.Option(False, "--json", help="Print everything as JSON."),
) -> None:
    """Race networks of several kinds: the same text, tokenizer and minutes, judged by the text's end.

    Nothing is saved: clearhead train --kind keeps a model.
    """
    from clearhead.labs.race import RACERS
    from clearhead.labs.race import race as run
    from clearhead.picture import check_place
    from clearhead.runs.request import Request
    from clearhead.text.corpus import documents

    if figure is not None:
        check_place(figure)
    request = Request(
        minutes=minutes,
        context=context,
        tokenizer=tokenizer,
        vocab=vocab,
        validation=read_validation(validation),
        seed=seed,
        device=device,
    )
    texts = list(documents(text, sys.stdin.buffer))
    done = run(
        texts,
        request,
        kind or RACERS,
        model or [],
        prompt,
        tokens,
        watch,
        lambda word: err.print(f"{word} …"),
    )
    if figure is not None:
        from clearhead.views.lab_results import draw_result

        draw_result(done.result(), f"{minutes:g} minutes each").save(figure)
    if json:
        print_json(done.to_dict())
    else:
        _show(done)


def _show(race: Race) -> None:
    rows = [
        {**vars(each), "learned": _whole(each.learned_a_second), "written": _whole(each.written_a_second)}
        for each in race.racers
    ]
    print_table(HEADINGS, rows)
    out.print("\nbits per byte by position in the window: how many of its tokens are read")
    width = max(len(each.name) for each in race.racers)
    places = sorted({place for each in race.racers for place, _ in each.by_position})
    out.print(" " * width + "".join(f"{place:>8g}" for place in places))
    for each in race.racers:
        known = dict(each.by_position)
        cells = (f"{known[place]:8.3f}" if place in known else " " * 8 for place in places)
        out.print(f"{each.name:<{width}}" + "".join(cells))
    out.print(f"\nafter {race.prompt!r}")
    _show_samples(race)


def _show_samples(race: Race) -> None:
    width = out.width // len(race.racers) - 2
    columns = [
        [each.name, *wrap(" ".join(each.sample.split()), max(width, NARROWEST))] for each in race.racers
    ]
    if width < NARROWEST:
        for column in columns:
            out.print("\n".join([*column, ""]))
        return
    for line in zip_longest(*columns, fillvalue=""):
        out.print("  ".join(f"{cell:<{width}}" for cell in line).rstrip())


def _whole(speed: float | None) -> int | None:
    return None if speed is None else round(speed)
