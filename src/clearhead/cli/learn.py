"""`clearhead learn`: one training step on a text, number by number, in the terminal."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.console import out, plural, print_json, read_argument
from clearhead.cli.options import DEVICE, MODEL
from clearhead.cli.tables import print_table, show_token
from clearhead.errors import UserError

if TYPE_CHECKING:
    from clearhead.lessons.effect import StepEffect
    from clearhead.lessons.lesson import Lesson

SHOWN_WEIGHTS = 5
SHOWN_TOKENS = 5  # those that moved a number most
LARGE_LOSS = -math.log(0.00005)  # of a probability that four decimals would show as 0


def learn(
    model: Path = MODEL,
    text: str = typer.Argument(..., metavar="TEXT", help="The text to learn, or - for standard input."),
    weight: str | None = typer.Option(
        None,
        metavar="NAME",
        help="Explain how one number in this weight, such as block.1.head.2.W_Q, changes; requires --at.",
    ),
    at: str | None = typer.Option(None, metavar="ROW,COLUMN", help="The row and column of that number."),
    other: str | None = typer.Option(
        None, help="Another text, whose loss is shown before and after the step."
    ),
    optimizer: str | None = typer.Option(None, help="adamw or muon. [default: as the model was trained]"),
    learning_rate: float | None = typer.Option(
        None, help="Learning rate of the matrices. [default: that of the model's training]"
    ),
    device: str = DEVICE,
    json: bool = typer.Option(False, "--json", help="Print the numbers as JSON."),
) -> None:
    """Show what one training step on a text would do.

    Shows each token's loss, the loss before and after the step, and the weights whose changes lower the loss most;
    or, for one number in a weight, the terms of its update and the tokens that move it. The model does not change.

    \b
    For example:
      clearhead learn stories "Once upon a time there was a fox."
      clearhead learn stories "Once upon a time" --other "The cat sat."
      clearhead learn stories "Once upon a time" --weight block.1.head.2.W_Q --at 3,5
    """
    from clearhead.language_model import load
    from clearhead.lessons.effect import measure_effect
    from clearhead.lessons.text_lesson import learn as compute

    if (weight is None) != (at is None):
        raise UserError("--weight and --at belong together: a weight, and the number in it to explain")
    if weight is not None and other is not None:
        raise UserError("--other applies to the whole step: omit it with --weight")
    place = None if at is None else _parse_place(at)
    lesson = compute(
        load(model, device), read_argument(text), optimizer=optimizer, learning_rate=learning_rate
    )
    if weight is not None and place is not None:
        document = _explain(lesson, weight, place)
        print_json(document) if json else _show_number(document)
        return
    effect = measure_effect(lesson, other, SHOWN_WEIGHTS)
    print_json(_step_document(lesson, effect)) if json else _show_step(lesson, effect)


def _parse_place(at: str) -> tuple[int, ...]:
    if not re.fullmatch(r"-?\d{1,9}(,-?\d{1,9})?", at.replace(" ", "")):
        raise UserError(f"--at {at}: expected a row and a column such as 3,5, or one index for a vector")
    return tuple(map(int, at.split(",")))


def _explain(lesson: Lesson, name: str, place: tuple[int, ...]) -> dict[str, Any]:
    row, *column = place
    parts = lesson.tokens(name, row, column[0] if column else None)
    update = lesson.update(name)
    terms = update.at(*place)
    before, after = terms.pop("before"), terms.pop("after")
    return {
        "weight": name,
        "at": list(place),
        "before": before,
        "gradient": parts.total,
        "terms": terms,
        "after": after,
        "cause": update.cause(*place),
        "tokens": [part._asdict() for part in parts.top(SHOWN_TOKENS)],
        "others": parts.others(SHOWN_TOKENS),
        "n_others": max(0, parts.values.numel() - SHOWN_TOKENS),
    }


def _show_number(document: dict[str, Any]) -> None:
    place = ", ".join(map(str, document["at"]))
    out.print(f"{document['weight']} [{place}] in one training step:\n", style="bold")
    terms = {name: value for name, value in document["terms"].items() if name != "rounding"}
    width = max(map(len, ("weight decay", *terms)))
    out.print(f"{'before':<{width}}  {document['before']:+.5g}")
    for name, value in terms.items():
        out.print(f"{name.replace('_', ' '):<{width}}  {value + 0.0:+.5g}")
    out.print(f"{'after':<{width}}  {document['after']:+.5g}")
    out.print(f"\n{_why(document)}")
    out.print(
        f"\nIts gradient is {document['gradient']:+.3e}, a sum over the positions of the text. A positive part pushes "
        "the weight down, a negative one up:"
    )
    for part in document["tokens"]:
        out.print(f"  {part['position']:>3} {show_token(part['token']):<12} {part['value']:+.3e}")
    if document["n_others"]:
        name = plural(document["n_others"], "other")
        out.print(f"      {name:<12} {document['others']:+.3e}")


def _why(document: dict[str, Any]) -> str:
    """Which way the number goes, and why."""
    cause, gradient = document["cause"], document["gradient"]
    if cause is None:
        return "It stays the same."
    change = document["after"] - document["before"]
    goes = f"It goes {'up' if change > 0 else 'down'}"
    sign = "positive" if gradient > 0 else "negative" if gradient < 0 else "0"
    if cause == "gradient":
        return f"{goes} because its gradient is {sign}."
    if cause == "weight_decay":
        return f"{goes} because weight decay pulls it toward 0, more strongly than anything else moves it."
    if cause.startswith("adapter"):
        return f"{goes} because its adapters change."
    relation = (
        f", as its {sign} gradient requires" if gradient * change < 0 else f" although its gradient is {sign}"
    )
    return f"{goes}{relation}: the deciding term is {cause.replace('_', ' ')}."


def _step_document(lesson: Lesson, effect: StepEffect) -> dict[str, Any]:
    targets = lesson.target_texts[0]
    losses, later = lesson.losses.tolist(), effect.losses[0].tolist()
    rows = zip(lesson.texts[0], targets, losses, later, strict=True)
    return {
        "loss": effect.loss._asdict(),
        "other": None if effect.other is None else effect.other._asdict(),
        "learning_rate": lesson.learning_rate,
        "tokens": [
            {"token": token, "target": target, "loss": before, "loss_after": after}
            for token, target, before, after in rows
            if target is not None
        ],
        "expected": effect.expected,
        "weights": [each._asdict() for each in effect.weights],
    }


def _show_step(lesson: Lesson, effect: StepEffect) -> None:
    targets = lesson.target_texts[0]
    count = sum(target is not None for target in targets)
    name = "Muon" if lesson.trainer.recipe.optimizer == "muon" else "AdamW"
    out.print(
        f"One training step on {plural(count, 'prediction')} ({name}, learning rate {lesson.learning_rate:.2g}):\n",
        style="bold",
    )
    rows = []
    for position, target in enumerate(targets):
        if target is None:
            continue
        before, after = lesson.losses[position].item(), effect.losses[0, position].item()
        rows.append(
            {
                "name": show_token(lesson.texts[0][position]),
                "text": show_token(target),
                "p": "<0.0001" if before > LARGE_LOSS else math.exp(-before),
                "loss": before,
                "after": after,
            }
        )
    headings = {"name": "token", "text": "next", "p": "P(next)", "loss": "loss", "after": "after the step"}
    print_table(headings, rows)
    out.print(f"\nloss on this text     {effect.loss.before:.4f} → {effect.loss.after:.4f}")
    if effect.other is not None:
        out.print(f"loss on the other     {effect.other.before:.4f} → {effect.other.after:.4f}")
    change = effect.loss.after - effect.loss.before
    out.print(
        f"\nThe loss changed by {change:+.4f}. To first order (gradient × change), it would have changed by "
        f"{effect.expected:+.4f}; these weights lower the loss most:"
    )
    for each in effect.weights:
        out.print(f"  {each.name:<24} {each.loss_change:+.4f}")
    out.print(
        "\nExplain one number with --weight NAME --at ROW,COLUMN (for a bias, gain or shift, --at INDEX)."
    )
