"""`clearhead generate`: what a model writes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.console import err, print_json, print_text
from clearhead.cli.options import DEVICE, MODEL, QUANTIZE

if TYPE_CHECKING:
    from clearhead.generate.detokenizer import Generated
    from clearhead.language_model import LanguageModel


def generate(
    context: typer.Context,
    model: Path = MODEL,
    prompt: str = typer.Argument(
        None, metavar="[PROMPT]", help="The text to go on from. [default: the start of a document]"
    ),
    tokens: int = typer.Option(200, help="How many tokens at most."),
    seconds: float | None = typer.Option(None, help="How long at most; what is there by then is the text."),
    temperature: float = typer.Option(0.8, help="0 always takes the likeliest; above 1 is wild."),
    top_k: int = typer.Option(None, help="Draw from the k likeliest only."),
    top_p: float = typer.Option(None, help="Draw from the likeliest that make up this probability."),
    min_p: float = typer.Option(None, help="Draw from those at least this share as likely as the likeliest."),
    repetition_penalty: float = typer.Option(
        1.0, help="Above 1 makes words less likely that were used, in the prompt too."
    ),
    presence_penalty: float = typer.Option(
        0.0, help="Taken once off the logit of each word written (-2 to 2)."
    ),
    frequency_penalty: float = typer.Option(0.0, help="… each time that it was written (-2 to 2)."),
    logit_bias: list[str] = typer.Option(
        None,
        metavar="TOKEN=NUMBER",
        help="Added to the logit of one token, by its text, or #ID; -100 is never (may be repeated).",
    ),
    regex: str | None = typer.Option(None, help="Only text that fits this regular expression, whole."),
    json_schema: Path | None = typer.Option(
        None, metavar="FILE", help="Only JSON that fits the schema in this file."
    ),
    beams: int | None = typer.Option(
        None, help="Draw nothing: follow so many texts, and give the likeliest."
    ),
    length_penalty: float | None = typer.Option(
        None, help="With --beams: above 0 favours longer texts. [default: 1, the mean a token]"
    ),
    shift: bool = typer.Option(
        False, "--shift", help="Once the context is full, drop its older half: fast, an approximation."
    ),
    seed: int = typer.Option(0, help="The same seed gives the same text."),
    stop: list[str] = typer.Option(None, help="End before this text (may be repeated)."),
    samples: int = typer.Option(1, help="How many texts."),
    device: str = DEVICE,
    quantize: str = QUANTIZE,
    json: bool = typer.Option(False, "--json", help="Print the texts, and why each ended, as JSON."),
    log_probabilities: int | None = typer.Option(
        None, metavar="N", help="With --json: of each token drawn, and of the N likeliest (0 to 20)."
    ),
) -> None:
    """Write on from a prompt, as it comes.

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
        raise UserError("the prompt is empty: give some text, or none at all to start a document")
    if log_probabilities is not None and not json:
        raise UserError("--log-probabilities are printed as JSON: add --json")
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
        "logit_bias": _read_bias(logit_bias) if logit_bias else None,
        "regex": regex,
        "json_schema": None if json_schema is None else read_own_json(json_schema, "a JSON schema"),
        "shift": shift,
        "seed": seed,
        "stop": stop or (),
        "log_probabilities": log_probabilities,
    }
    searched = beams is not None or length_penalty is not None
    if searched:
        given = {name for name in (*settings, "samples") if _was_given(context, name)}
        settings = {name: value for name, value in settings.items() if name in {*given, "tokens"}}
        settings |= {"beams": beams, "length_penalty": length_penalty}
        settings |= {"samples": samples} if "samples" in given else {}
    loaded = load(model, device, quantize=quantize)
    streamed = samples == 1 and not searched and not json
    if streamed:
        pieces = loaded.stream(prompt, **settings)
    elif searched:
        texts = [loaded.generate(prompt, **settings)]
    else:
        texts = loaded.generate(prompt, samples=samples, **settings)
    if shift:
        n_context = loaded.config.n_context
        err.print(f"once {n_context} tokens are there, the older half is dropped: an approximation")
    if streamed:
        print_text(prompt or "")
        for piece in pieces:
            print_text(piece)
        print_text("\n")
        return
    if json:
        print_json({"prompt": prompt, **_tell(texts, loaded, log_probabilities), **settings})
        return
    for i, text in enumerate(texts):
        print_text(f"--- {i}\n{prompt or ''}{text}\n" if len(texts) > 1 else f"{prompt or ''}{text}\n")


def _was_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _read_bias(given: list[str]) -> dict[int | str, float]:
    from clearhead.errors import UserError

    biases: dict[int | str, float] = {}
    for each in given:
        token, _, number = each.rpartition("=")
        try:
            bias = float(number)
        except ValueError:
            bias = math.nan
        if not token or math.isnan(bias):
            raise UserError(f"--logit-bias {each!r}: expected a token and a number, such as ' time=-5'")
        is_id = token.startswith("#") and token[1:].isascii() and token[1:].isdigit()
        biases[int(token[1:]) if is_id else token] = bias
    return biases


def _tell(texts: list[Generated], model: LanguageModel, count: int | None) -> dict[str, Any]:
    """The texts, why each ended, and the tokens drawn for each where they were asked for."""
    told: dict[str, Any] = {"texts": texts, "finish_reasons": [text.finish_reason for text in texts]}
    if count is None:
        return told

    def named(i: int, log_probability: float | None) -> dict[str, Any]:
        return {"token": model.tokenizer.pieces([i])[0], "id": i, "log_probability": log_probability}

    told["sampled"] = [
        [
            {
                **named(token.id, token.log_probability),
                "alternatives": [named(*each) for each in token.alternatives],
            }
            for token in text.sampled
        ]
        for text in texts
    ]
    return told
