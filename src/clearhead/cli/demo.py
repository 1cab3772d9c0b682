"""`clearhead demo`: train on the built-in stories for about a minute, shown on the page or in the terminal."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import typer

from clearhead.cli import serve
from clearhead.cli.config import typed_again
from clearhead.cli.console import err, out, plural, print_text
from clearhead.cli.explore import can_open, open_browser
from clearhead.cli.options import DEVICE, PRESET
from clearhead.cli.progress import TerminalObserver
from clearhead.cli.tables import attention_table
from clearhead.cli.train import choose_folder, show_outcome

if TYPE_CHECKING:
    from clearhead.language_model import LanguageModel
    from clearhead.runs.request import TrainingRequest

BUILT_IN = "stories"


def demo(
    typed: typer.Context,
    minutes: float = typer.Option(1.0, help="Training time in minutes."),
    preset: str = PRESET,
    folder: Path = typer.Option(None, "--out", "-o", help="Folder for the model. [default: runs/demo]"),
    seed: int = typer.Option(0, help="Seed for training and for the generated story."),
    device: str = DEVICE,
    resume: bool = typer.Option(False, "--resume", help="Resume a demo that was stopped in the terminal."),
    no_browser: bool = typer.Option(False, "--no-browser", help="Train in the terminal instead."),
) -> None:
    """Open the built-in model and watch a new one train.

    The page shows the new model's loss, samples and heads as they form, and then compares it with the built-in
    one. Without a browser, demo trains in the terminal, generates a story and shows what one head attends to.

    \b
    For example:
      clearhead demo
      clearhead demo --preset lecture
      clearhead demo --minutes 3 --no-browser
    """
    from clearhead.formats.folder import check_free
    from clearhead.runs.demo import demo_request

    folder = folder or choose_folder("demo", resume)
    if not resume:
        check_free(folder)
    request = demo_request(minutes=minutes, preset=preset, seed=seed, device=device)
    reason = None if no_browser or resume else _cannot_show()
    if not no_browser and not resume and reason is None:
        _train_on_page(folder, request)
    else:
        if reason is not None:
            err.print(f"Training in the terminal: {reason}.")
        _train_in_terminal(folder, request, resume, [*sys.argv, *typed_again(typed)])


def _cannot_show() -> str | None:
    """Why the page is not opened; None if someone is at the terminal, with a browser, and the page is installed."""
    from clearhead.page.assets import has_site

    if not sys.stdout.isatty() or os.environ.get("CI"):
        return "the output is not a terminal"
    if not can_open():
        return "no graphical browser was found"
    return None if has_site() else "the page was not built with this installation"


def _train_on_page(folder: Path, request: TrainingRequest) -> None:
    """Serve the page with the built-in model, and start the run as the page's own button does."""
    from clearhead.formats.places import all_places

    run = _new_run(folder.name, request)

    def show(address: str) -> None:
        threading.Thread(target=_start_run, args=(address, run), daemon=True).start()
        open_browser(f"{address}&{urlencode({'view': 'training', 'runs': folder.name})}")

    err.print(f"Opening the built-in model {BUILT_IN} in the browser. Press Ctrl-C to stop.")
    places = [folder.parent, *(each for each in all_places() if each != folder.parent)]
    serve.run(
        [BUILT_IN],
        "127.0.0.1",
        0,
        request.device,
        show=show,
        places=places,
        log=lambda _: None,
        ended=lambda: _tell_end(folder),
    )


def _new_run(name: str, request: TrainingRequest) -> dict[str, Any]:
    """The body of the page's request to train, with the demo's settings."""
    from clearhead.runs.demo import SETTINGS, SNAPSHOTS

    chosen = {"minutes": request.minutes, "preset": request.preset, "seed": request.seed}
    return {"name": name, "snapshots": SNAPSHOTS, **SETTINGS, **chosen}


def _start_run(address: str, run: dict[str, Any]) -> None:
    """Ask the server to start the run; the request waits until the server answers."""
    url = urlsplit(address)
    (token,) = parse_qs(url.query)["token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection = HTTPConnection(url.netloc)
    try:
        connection.request("POST", "/api/train", json.dumps(run), headers)
        response = connection.getresponse()
        if response.status != 200:
            message = json.load(response)["error"]["message"]
            err.print(f"clearhead: training could not be started: {message}")
    except OSError:  # the server has been stopped
        pass
    finally:
        connection.close()


def _tell_end(folder: Path) -> str:
    """Whether the run was saved, and how to see or resume it."""
    from clearhead.runs.listing import describe_run
    from clearhead.runs.run_folder import is_run

    if not is_run(folder):
        return "stopped before training began; nothing was saved"
    if describe_run(folder).finished:
        return f"ended; to see the model again: {shlex.join(['clearhead', 'explore', str(folder)])}"
    return f"stopped; {folder} is saved: to resume it, run clearhead explore and go to Training"


def _train_in_terminal(folder: Path, request: TrainingRequest, resume: bool, command: list[str]) -> None:
    from clearhead.runs.demo import SNAPSHOTS, demo_texts
    from clearhead.runs.training import train_network

    texts = demo_texts()
    err.print(
        f"Training on {len(texts):,} short stories generated by a grammar. Press Ctrl-C to stop early.\n"
    )
    outcome = train_network(
        folder,
        lambda: texts,
        request,
        TerminalObserver(),
        resume=resume,
        command=command,
        snapshots=SNAPSHOTS,
    )
    see = shlex.join(["clearhead", "explore", str(folder)])
    if outcome is None:
        err.print(f"the run in {folder} is finished; to see it: {see}")
        return
    if not outcome.finished and outcome.error is None:
        steps = plural(outcome.run.trainer.step, "step")
        err.print(f"stopped after {steps}; saved to {folder}: run the same command with --resume to continue")
        return
    show_outcome(outcome)
    model = outcome.run.model
    story = str(model.generate(tokens=250, seed=request.seed))
    out.print("\nA story it generated:\n", style="bold")
    print_text(f"{story}\n")
    copied = any(story == text for document in texts for text in document.read())
    out.print(f"\n(This story is {'' if copied else 'not '}in the training text.)", style="dim")
    _show_head(model)
    out.print(f"\nSee every step in a browser: {see}")
    out.print("The built-in model, trained for longer: clearhead explore stories")


def _show_head(model: LanguageModel) -> None:
    """Show the head with the clearest role, on the same text that the page opens with."""
    from clearhead.inspect.state_trace import need_heads
    from clearhead.labs.opening import find_opening

    found = find_opening(model)
    trace = need_heads(model.inspect(found.text), "a head")
    weights = trace.block[found.block].head[found.head].weights
    out.print(f"\nAttention weights of block {found.block}, head {found.head}, in percent:\n", style="bold")
    out.print(attention_table(trace.tokens, weights))
    config, share = model.transformer().config, f"{found.weight:.0%}"
    out.print(f"\nEach row is a softmax of q·k/√{config.d_head} over its token and the tokens before it.")
    if found.role == "antecedent":
        row = weights[found.row]
        pronoun, noun = (trace.tokens[i].strip() for i in (found.row, int(row.argmax())))
        out.print(f"“{pronoun}” attends most to “{noun}”; {share} of its attention is on the antecedent.")
    elif found.role == "induction":
        out.print(
            f"A repeated token puts {share} of its attention on the token that followed its previous occurrence."
        )
    elif found.role == "previous":
        out.print(f"On average, a token puts {share} of its attention on the token before it.")
    else:
        out.print("No head has a clear role in this text yet.")
