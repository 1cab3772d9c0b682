"""`clearhead eval`: the loss of a model on a text."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from clearhead.cli.console import clock, out, print_json, read_texts
from clearhead.cli.options import DEVICE, MODEL, QUANTIZE, TEXT
from clearhead.cli.progress import live_line

TOKENS_AT_ONCE = 4096


def evaluate(
    model: Path = MODEL,
    text: list[str] = TEXT,
    device: str = DEVICE,
    quantize: str = QUANTIZE,
    context: int | None = typer.Option(None, help="Tokens per window.  [default: the model's context]"),
    stride: int | None = typer.Option(
        None, help="Tokens from the start of one window to that of the next. [default: no overlap]"
    ),
    json: bool = typer.Option(False, "--json", help="Print the figures as JSON."),
) -> None:
    """Print loss, perplexity and bits per byte.

    Every token counts once. With a stride below the context, windows overlap, so that a token is predicted from at
    least context minus stride tokens before it, if its document has that many. For conversations (.jsonl) and a
    model with a chat template, only the assistant's replies count.

    \b
    For example:
      clearhead eval runs/my other.txt
      clearhead eval smollm2 other.txt --json
      clearhead eval smollm2 other.txt --context 1024 --stride 512
    """
    from clearhead.language_model import load

    texts = read_texts(text)
    loaded = load(model, device, quantize=quantize)
    # Small enough that a large model reports progress every few seconds.
    rows = max(1, TOKENS_AT_ONCE // max(1, context or loaded.config.n_context))
    began = time.monotonic()
    with live_line() as show:

        def report(done: int, total: int) -> None:
            left = (time.monotonic() - began) * (total - done) / done
            show(f"{done:,} of {total:,} tokens   {clock(left)} left", False)

        evaluation = loaded.evaluate(texts, rows, report, context=context, stride=stride)
    figures = {
        "loss": evaluation.loss,
        "perplexity": evaluation.perplexity,
        "bits_per_byte": evaluation.bits_per_byte,
        "tokens": evaluation.tokens,
        "bytes": evaluation.bytes,
        "replies": evaluation.replies,
        "context": evaluation.context,
        "stride": evaluation.stride,
    }
    if json:
        print_json(figures)
        return
    out.print(f"loss            {evaluation.loss:.4f} nats per token")
    out.print(f"perplexity      {evaluation.perplexity:.2f}")
    if evaluation.bits_per_byte is not None:
        out.print(f"bits per byte   {evaluation.bits_per_byte:.4f}")
    of = " of replies" if evaluation.replies else ""
    out.print(f"over            {evaluation.tokens:,} tokens{of}, {evaluation.bytes:,} bytes")
    apart = "" if evaluation.stride == evaluation.context else f", {evaluation.stride:,} apart"
    out.print(f"in windows of   {evaluation.context:,} tokens{apart}")
