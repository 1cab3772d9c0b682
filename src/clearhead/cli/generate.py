"""`clearhead generate`: generate text from a prompt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.console import err, print_json, print_text
from clearhead.cli.options import DEVICE, MODEL, QUANTIZE, generation_option

if TYPE_CHECKING:
    from clearhead.generate.detokenizer import Generated
    from clearhead.language_model import LanguageModel


def generate(
    context: typer.Context,
    model: Path = MODEL,
    prompt: str = typer.Argument(
        None, metavar="PROMPT", help="The text to continue. [default: the start of a document]"
    ),
    tokens: int = generation_option("tokens"),
    seconds: float | None = generation_option("seconds"),
    temperature: float = generation_option("temperature"),
    top_k: int = generation_option("top_k"),
    top_p: float = generation_option("top_p"),
    min_p: float = generation_option("min_p"),
    repetition_penalty: float = generation_option("repetition_penalty"),
    presence_penalty: float = generation_option("presence_penalty"),
    frequency_penalty: float = generation_option("frequency_penalty"),
    logit_bias: list[str] = generation_option(
        "logit_bias", metavar="TOKEN=NUMBER", note="TOKEN is a token's text or #ID; may be repeated"
    ),
    regex: str | None = generation_option("regex"),
    json_schema: Path | None = generation_option("json_schema", metavar="FILE"),
    beams: int | None = generation_option("beams"),
    length_penalty: float | None = generation_option("length_penalty", None, note="default 1"),
    shift: bool = generation_option("shift", False, "--shift"),
    draft: str | None = generation_option("draft", metavar="FILE|repeats"),
    seed: int = generation_option("seed"),
    stop: list[str] = generation_option("stop", note="may be repeated"),
    samples: int = generation_option("samples"),
    device: str = DEVICE,
    quantize: str = QUANTIZE,
    json: bool = typer.Option(False, "--json", help="Print the texts and their finish reasons as JSON."),
    log_probabilities: int | None = generation_option(
        "log_probabilities", metavar="N", note="requires --json"
    ),
) -> None:
    """Generate text from a prompt, streaming it as it is produced.

    \b
    For example:
      clearhead generate runs/my "Once upon a time"
      clearhead generate runs/my "Once" --tokens 50 --temperature 0.7 --seed 1
      clearhead generate smollm2 "Is it red?" --regex " (yes|no)"
    """
    from clearhead.errors import UserError
    from clearhead.files import read_own_json
    from clearhead.language_model import load

    if prompt == "":
        raise UserError("the prompt is empty: give some text, or omit the prompt to start a document")
    if log_probabilities is not None and not json:
        raise UserError("--log-probabilities requires JSON output: add --json")
    settings: dict[str, Any] = {
        "tokens": tokens,
        "seconds": seconds,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty,
        "logit_bias": _parse_bias(logit_bias) if logit_bias else None,
        "regex": regex,
        "json_schema": None if json_schema is None else read_own_json(json_schema, "a JSON schema"),
        "shift": shift,
        "draft": draft,
        "seed": seed,
        "stop": stop or (),
        "log_probabilities": log_probabilities,
    }
    by_search = beams is not None or length_penalty is not None
    if by_search:
        given = {name for name in (*settings, "samples") if _is_given(context, name)}
        settings = {name: value for name, value in settings.items() if name in {*given, "tokens"}}
        settings |= {"beams": beams, "length_penalty": length_penalty}
        settings |= {"samples": samples} if "samples" in given else {}
    loaded = load(model, device, quantize=quantize)
    streamed = samples == 1 and not by_search and not json
    if streamed:
        pieces = loaded.stream(prompt, **settings)
    elif by_search:
        texts = [loaded.generate(prompt, **settings)]
    else:
        texts = loaded.generate(prompt, samples=samples, **settings)
    if shift:
        n_context = loaded.config.n_context
        err.print(f"after {n_context} tokens, the older half of the context is dropped: an approximation")
    if streamed:
        print_text(prompt or "")
        try:
            for piece in pieces:
                print_text(piece)
        finally:  # what follows, such as an error, starts on a line of its own
            print_text("\n")
        return
    if json:
        described = _describe(texts, loaded, log_probabilities)
        if draft is not None:
            described["drafted"] = [sum(token.drafted for token in text.sampled) for text in texts]
        print_json({"prompt": prompt, **described, **settings})
        return
    for i, text in enumerate(texts):
        print_text(f"--- {i}\n{prompt or ''}{text}\n" if len(texts) > 1 else f"{prompt or ''}{text}\n")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _parse_bias(pairs: list[str]) -> dict[int | str, float]:
    from clearhead.errors import UserError

    biases: dict[int | str, float] = {}
    for pair in pairs:
        token, _, number = pair.rpartition("=")
        try:
            bias = float(number)
        except ValueError:
            bias = math.nan
        if not token or math.isnan(bias):
            raise UserError(f"--logit-bias {pair!r}: expected a token and a number, such as ' time=-5'")
        is_id = token.startswith("#") and token[1:].isascii() and token[1:].isdigit()
        biases[int(token[1:]) if is_id else token] = bias
    return biases


def _describe(texts: list[Generated], model: LanguageModel, count: int | None) -> dict[str, Any]:
    """Return the texts and finish reasons, and the tokens if log-probabilities were requested."""
    described: dict[str, Any] = {"texts": texts, "finish_reasons": [text.finish_reason for text in texts]}
    if count is None:
        return described

    def name_token(i: int, log_probability: float | None) -> dict[str, Any]:
        return {"token": model.tokenizer.pieces([i])[0], "id": i, "log_probability": log_probability}

    described["sampled"] = [
        [
            {
                **name_token(token.id, token.log_probability),
                "alternatives": [name_token(*each) for each in token.alternatives],
            }
            for token in text.sampled
        ]
        for text in texts
    ]
    return described
