"""`clearhead inspect`: what a model computes over a text, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clearhead.cli.attention import attention_table, show_token
from clearhead.cli.console import out, print_json

if TYPE_CHECKING:
    from torch import Tensor

    from clearhead.inspect.trace import Trace

MOST_TOKENS = 16  # of an attention table, which must fit across a terminal
MOST_ROWS = 24  # of a matrix, before it is cut
MOST_COLUMNS = 12


def inspect(
    model: Path = typer.Argument(..., help="A model: its folder, a GGUF file, or a name."),
    text: str = typer.Argument(..., help="The text to look at."),
    block: int | None = typer.Option(None, help="Show a head of this block."),
    head: int | None = typer.Option(None, help="Which of its heads."),
    site: str | None = typer.Option(None, help="Show a site by name, such as block.0.head.0.scores."),
    svg: Path | None = typer.Option(None, help="Draw it into this file instead: .svg, .png or .pdf."),
    sites: bool = typer.Option(False, "--sites", help="List the names of all sites."),
    device: str = typer.Option(None, help="cpu, cuda or mps. [default: the best there is]"),
    json: bool = typer.Option(False, "--json", help="Print the numbers as JSON; -inf is null."),
) -> None:
    """Show what each block would say next, where a head looks, or the numbers at any site."""
    from clearhead.language_model import load

    trace = load(model, device).inspect(text)
    if sites:
        print_json(trace.sites()) if json else out.print("\n".join(trace.sites()))
        return
    if block is not None or head is not None:
        site = site or f"block.{block or 0}.head.{head or 0}.weights"
    if svg is not None:
        from clearhead.views.figures import figure

        figure(trace, site).save(svg)
        out.print(f"drawn into {svg}")
    elif site is not None:
        _show_site(trace, site, json)
    elif json:
        print_json({"tokens": trace.tokens, "lens": trace.lens().words(), "verify": trace.verify()})
    else:
        _show_lens(trace)


def _show_site(trace: Trace, site: str, json: bool) -> None:
    value = trace[site]
    if json:
        shape = list(value.shape)
        print_json({"site": site, "shape": shape, "tokens": trace.tokens, "value": value.tolist()})
    elif site.endswith(".weights"):
        out.print(f"{site}, in hundredths:\n", style="bold")
        first = max(0, len(trace.tokens) - MOST_TOKENS)
        out.print(attention_table(trace.tokens[first:], value[first:, first:], first))
        if first:
            out.print(f"\nOnly the last {MOST_TOKENS} of {len(trace.tokens)} tokens; --json gives all.")
    else:
        _show_numbers(trace, site, value)


def _show_numbers(trace: Trace, site: str, value: Tensor) -> None:
    """A row for each token, as many rows and columns as are readable."""
    shape = "×".join(map(str, value.shape))
    out.print(f"{site}, {shape}:\n", style="bold")
    rows = value[:, None] if value.dim() == 1 else value
    width = max(len(show_token(token)) for token in trace.tokens)
    for i, (token, row) in enumerate(zip(trace.tokens[:MOST_ROWS], rows.tolist(), strict=False)):
        numbers = "".join(f"{number:9.3f}" for number in row[:MOST_COLUMNS])
        out.print(f"{i:>3} {show_token(token):<{width}}{numbers}{' …' if len(row) > MOST_COLUMNS else ''}")
    if len(rows) > MOST_ROWS:
        out.print(f"… and {len(rows) - MOST_ROWS} more; --json gives all")


def _show_lens(trace: Trace) -> None:
    out.print("What each block would say next, and the last, which is what the model says:\n", style="bold")
    for k, words in enumerate(trace.lens().words()):
        said = "  ".join(f"{show_token(word)} {probability:.2f}" for word, probability in words)
        out.print(f"block {k:>2}   {said}")
    config = trace.config
    out.print(f"\n{len(trace.tokens)} tokens, {config.n_block} blocks of {config.n_head} heads.")
    out.print(f"The parts give back the whole to {trace.verify():.1e}.")
    out.print(
        "See where a head looks with --block 0 --head 0, any numbers with --site NAME (--sites lists them)."
    )
