"""`clearhead inspect`: what a model computes for a text, in the terminal."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.completion import complete_sites
from clearhead.cli.console import out, plural, print_json, read_argument
from clearhead.cli.options import DEVICE, MODEL
from clearhead.cli.tables import (
    NUMBER,
    SHARE,
    attention_table,
    columns_that_fit,
    number_table,
    show_token,
)
from clearhead.errors import UserError

if TYPE_CHECKING:
    from clearhead.inspect.state_trace import AnyTrace
    from clearhead.inspect.trace import Trace

MOST_ROWS = 16  # by default
MOST_TOKENS = 5  # shown per block


def inspect(
    model: Path = MODEL,
    text: str = typer.Argument(..., metavar="TEXT", help="The text to inspect, or - for standard input."),
    block: int | None = typer.Option(None, help="Show a head in this block. [default: 0]"),
    head: int | None = typer.Option(None, help="The head to show. [default: 0]"),
    site: str | None = typer.Option(
        None,
        help="Show a site by name, such as block.0.head.0.scores, or by a symbol of the lectures: x, t1 to t5 or h of "
        "--block, or q, k, v, alpha or a of its --head.",
        autocompletion=complete_sites,
    ),
    rows: str | None = typer.Option(
        None, metavar="A:B", help="Show positions A to B (exclusive); either may be omitted or negative."
    ),
    figure: Path | None = typer.Option(
        None, metavar="FILE", help="Save a figure to this file instead: .svg, .png or .pdf."
    ),
    sites: bool = typer.Option(False, "--sites", help="List the names of all sites."),
    device: str = DEVICE,
    json: bool = typer.Option(False, "--json", help="Print the numbers as JSON; -inf becomes null."),
) -> None:
    """Show the steps of a model in the terminal.

    Shows the logit lens (each block's prediction), a head's attention, or the numbers at any site.

    \b
    For example:
      clearhead inspect runs/my "Once upon a time"
      clearhead inspect runs/my "Once upon a time" --block 0 --head 0
      clearhead inspect runs/my "Once" --site block.0.head.0.scores --json
    """
    from clearhead.inspect.sites import BLOCK_SYMBOLS, HEAD_SYMBOLS
    from clearhead.inspect.state_trace import StateTrace, need_heads
    from clearhead.language_model import load

    if sites and any(given is not None for given in (block, head, site, rows, figure)):
        raise UserError(
            "--sites lists the names of all sites: omit --block, --head, --site, --rows and --figure"
        )
    symbol = site if site in BLOCK_SYMBOLS or site in HEAD_SYMBOLS else None
    if site is not None and symbol is None and (block is not None or head is not None):
        raise UserError(f"--site {site} is a complete site name: omit --block and --head")
    if figure is not None and json:
        raise UserError("--figure saves a figure and --json prints numbers: give only one")
    chosen = None if rows is None else _parse_rows(rows)
    trace = load(model, device).inspect(read_argument(text))
    if sites:
        print_json(trace.sites()) if json else out.print("\n".join(trace.sites()))
        return
    positions = None if chosen is None else _positions(trace, rows or "", chosen)
    if symbol is not None:
        site = _site_of(symbol, need_heads(trace, f"--site {symbol}"), block or 0, head)
    elif block is not None or head is not None:
        site = _head_of(need_heads(trace, "a head (`--block`, `--head`)"), block or 0, head or 0) + ".weights"
    if isinstance(trace, StateTrace) and site is None:
        site = f"block.{trace.config.n_block - 1}.state"
    if figure is not None:
        from clearhead.figures.figure import figure as draw

        draw(trace, site, rows=positions).save(figure)
        out.print(f"saved to {figure}")
    elif site is not None and site != "lens":
        _show_site(trace, site, positions, json)
    elif json:
        print_json(_lens_document(need_heads(trace, "the lens"), positions))
    else:
        _show_lens(need_heads(trace, "the lens"), positions)


def _parse_rows(rows: str) -> slice:
    found = re.fullmatch(r"(-?\d+)?:(-?\d+)?|(-?\d+)", rows.strip())
    if not found:
        raise UserError(f"--rows {rows}: expected positions such as 10:20, :20, -5: or 7")
    start, stop, alone = (None if part is None else int(part) for part in found.groups())
    if alone is not None:
        return slice(alone, alone + 1 or None)
    return slice(start, stop)


def _positions(trace: AnyTrace, rows: str, chosen: slice) -> range:
    T = len(trace.tokens)
    positions = range(*chosen.indices(T))
    if not positions:
        raise UserError(f"--rows {rows}: the text has positions 0 to {T - 1}")
    return positions


def _head_of(trace: Trace, block: int, head: int) -> str:
    for kind, number, count in (("block", block, trace.config.n_block), ("head", head, trace.config.n_head)):
        if not 0 <= number < count:
            raise UserError(f"--{kind} {number}: this model has {kind}s 0 to {count - 1}")
    return f"block.{block}.head.{head}"


def _site_of(symbol: str, trace: Trace, block: int, head: int | None) -> str:
    """Return the name of the site that one of the lectures' symbols stands for."""
    from clearhead.inspect.sites import HEAD_SYMBOLS, name_of_symbol

    if symbol in HEAD_SYMBOLS:
        return f"{_head_of(trace, block, head or 0)}.{HEAD_SYMBOLS[symbol]}"
    if head is not None:
        raise UserError(f"--site {symbol} is a site of a block, not of a head: omit --head")
    name = name_of_symbol(symbol, trace.config)
    return f"{_head_of(trace, block, 0).partition('.head')[0]}.{name}"


def _show_site(trace: AnyTrace, site: str, positions: range | None, json: bool) -> None:
    from clearhead.inspect.sites import MATRICES

    T = len(trace.tokens)
    rows = positions or (range(T) if json else range(max(0, T - MOST_ROWS), T))
    value = trace.read(site, rows=slice(rows.start, rows.stop))
    if json:
        document = {"site": site, "shape": list(value.shape), "rows": [rows.start, rows.stop]}
        print_json({**document, "tokens": trace.tokens, "value": value.tolist()})
        return
    shape = "in percent" if site.endswith(".weights") else "×".join(map(str, (T, *value.shape[1:])))
    value = value[:, None] if value.dim() == 1 else value
    draw, cell = (attention_table, SHARE) if site.endswith(".weights") else (number_table, NUMBER)
    fit = columns_that_fit(trace.tokens, rows, shutil.get_terminal_size().columns, cell)
    is_matrix = ".head." in site and site.split(".")[-1] in MATRICES
    if is_matrix:
        # The last columns that fit, and by default no more rows than columns.
        last = rows.stop if trace.config.causal else T
        columns = range(max(0, last - fit), last)
        rows = rows if positions else rows[-fit:]
    else:
        last = value.shape[1]
        columns = range(min(fit, last))
    out.print(f"{site}, {shape}:\n", style="bold")
    out.print(draw(trace.tokens, value[-len(rows) :, columns.start : columns.stop], rows, columns))
    _say_what_is_shown(rows, T, columns, last, "columns" if is_matrix else "features")


def _say_what_is_shown(rows: range, T: int, columns: range, last: int, what: str) -> None:
    shown = []
    if len(rows) < T:
        to = f"s {rows.start} to {rows.stop - 1}" if len(rows) > 1 else f" {rows.start}"
        shown.append(f"position{to} of {T}")
    if len(columns) < last:
        shown.append(f"{what} {columns.start} to {columns.stop - 1} of {last}")
    if shown:
        out.print(f"\nShown: {', '.join(shown)}.\n--rows A:B selects positions, --json prints everything.")


def _lens_document(trace: Trace, positions: range | None) -> dict[str, Any]:
    """The logit lens after the last token, or after each of the given positions."""
    if positions is None:
        lens: Any = trace.lens().tokens()
    else:
        lens = [
            {"position": t, "tokens": tokens}
            for t, tokens in zip(positions, _said(trace, positions), strict=True)
        ]
    return {"tokens": trace.tokens, "lens": lens, "verify": trace.verify()}


def _said(trace: Trace, positions: range) -> list[list[list[tuple[str, float]]]]:
    """For each position and block, the most likely next tokens with their probabilities."""
    said: list[list[list[tuple[str, float]]]] = [[] for _ in positions]
    lens = trace.lens()
    for k in range(len(lens)):
        shares = lens[k][positions.start : positions.stop].softmax(-1)
        best = shares.topk(min(MOST_TOKENS, shares.shape[-1]))
        for at, ids, values in zip(said, best.indices.tolist(), best.values.tolist(), strict=True):
            at.append(list(zip(trace.token_texts(ids), values, strict=True)))
    return said


def _show_lens(trace: Trace, positions: range | None) -> None:
    T = len(trace.tokens)
    shown = positions or range(T - 1, T)
    out.print(
        "Logit lens: each block's prediction of the next token; the last is the model's own.\n", style="bold"
    )
    for t, blocks in zip(shown, _said(trace, shown), strict=True):
        if positions is not None:
            out.print(f"after {t} {show_token(trace.tokens[t])}")
        for k, tokens in enumerate(blocks):
            said = "  ".join(f"{show_token(token)} {probability:.2f}" for token, probability in tokens)
            out.print(f"block {k:>2}   {said}")
    config = trace.config
    out.print(
        f"\n{plural(T, 'token')}, {plural(config.n_block, 'block')} of {plural(config.n_head, 'head')}."
    )
    out.print(f"Recomputed from its parts, the trace agrees with the model to within {trace.verify():.1e}.")
    out.print(
        "Show a head's attention with --block 0 --head 0, or any site with --site NAME (--sites lists them)."
    )
