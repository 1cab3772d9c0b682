"""`clearhead demo`: a model trained on the built-in stories in about a minute, and a look inside it."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clearhead.cli.config import typed_again
from clearhead.cli.console import err, out, print_text
from clearhead.cli.explore import can_open, explore
from clearhead.cli.options import DEVICE
from clearhead.cli.progress import show_plan
from clearhead.cli.tables import attention_table
from clearhead.cli.train import finish, free_folder

if TYPE_CHECKING:
    from clearhead.language_model import LanguageModel

# As it stands in the middle of a story, after a space.
SENTENCE = " The chicken didn't cross the road because it was too tired."
STORIES_LOOKED_AT = 30  # that the model never saw, to choose the head by


def demo(
    typed: typer.Context,
    minutes: float = typer.Option(1.0, help="How long to train."),
    folder: Path = typer.Option(None, "--out", "-o", help="Folder for the model. [default: runs/demo]"),
    seed: int = typer.Option(0, help="Of the training and of the story."),
    device: str = DEVICE,
    no_browser: bool = typer.Option(False, "--no-browser", help="End without opening the page."),
) -> None:
    """Train on built-in stories for a minute, and look inside.

    It writes a story, shows where a head looks, and opens the page in the browser.

    \b
    For example:
      clearhead demo
      clearhead demo --minutes 3 --no-browser
    """
    from clearhead.formats.folder import check_free, check_room
    from clearhead.runs.demo import demo_request, demo_texts
    from clearhead.runs.kept_run import KeptRun

    folder = folder or free_folder(Path("runs"), "demo")
    check_free(folder)
    request = demo_request(minutes=minutes, seed=seed, device=device)
    texts = demo_texts()
    err.print(f"Training on {len(texts):,} small stories that a grammar writes. Ctrl-C ends early.\n")
    kept = KeptRun.open(folder, texts, request, command=[*sys.argv, *typed_again(typed)])
    assert kept is not None
    with kept:
        check_room(folder, kept.run.plan.config)
        show_plan(kept.run)
        finish(kept, folder)
    model = kept.run.model
    story = str(model.generate(tokens=250, seed=seed))
    out.print("\nA story it wrote:\n", style="bold")
    print_text(f"{story}\n")
    copied = any(story == text for document in texts for text in document.read())
    out.print(f"\n({'It is one of' if copied else 'It is none of'} those it was trained on.)", style="dim")
    _show_head(model)
    _open_page(folder, device, no_browser)


def _show_head(model: LanguageModel) -> None:
    """The head that best finds what a pronoun stands for, over the lecture's sentence."""
    from clearhead.inspect.state_trace import need_heads
    from clearhead.labs.heads import find_antecedents

    scores, alike, count = find_antecedents(model, STORIES_LOOKED_AT)
    config = model.transformer().config
    block, head = divmod(int(scores.argmax()), config.n_head)
    trace = need_heads(model.inspect(SENTENCE), "a head")
    out.print(f"\nWhere block {block}, head {head} looks, in hundredths:\n", style="bold")
    out.print(attention_table(trace.tokens, trace.block[block].head[head].weights))
    d_head, n, best = config.d_head, scores.numel(), scores.max().item()
    out.print(
        f"\nEach row is a softmax of q·k/√{d_head} over the tokens up to its own. Of {n} heads this one looks"
    )
    out.print(f"most from a pronoun to what it stands for: {best:.2f} of its weight, on average over {count}")
    out.print(f"pronouns in stories it never saw. Looking at all words alike would be {alike:.2f}.")


def _open_page(folder: Path, device: str, no_browser: bool) -> None:
    """Where someone is looking and can be shown something; elsewhere, how to see it."""
    from clearhead.page.assets import has_site

    looking = sys.stdout.isatty() and not os.environ.get("CI") and not no_browser
    if looking and can_open() and has_site():
        out.print("\nThe page opens in the browser; Ctrl-C ends.\n", style="bold")
        explore([str(folder)], no_browser=False, port=0, token=None, device=device)
    else:
        out.print(f"\nEvery step of it, in a browser: {shlex.join(['clearhead', 'explore', str(folder)])}")
