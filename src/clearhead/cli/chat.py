"""`clearhead chat`: a conversation with a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.console import err, print_text

if TYPE_CHECKING:
    from clearhead.language_model import LanguageModel

HELP = "/reset forgets what was said, /save FILE keeps it, /quit ends"


def chat(
    model: str = typer.Argument(
        ..., help="A model with a chat template: its folder, a GGUF file, or a name."
    ),
    system: str = typer.Option(None, help="What the model is told before the first message."),
    tokens: int = typer.Option(512, min=1, help="How many tokens a reply has at most."),
    temperature: float = typer.Option(0.7, help="0 always takes the likeliest; above 1 is wild."),
    top_p: float = typer.Option(0.9, help="Draw from the likeliest that make up this probability."),
    repetition_penalty: float = typer.Option(1.0, help="Above 1 makes words that were used less likely."),
    seed: int = typer.Option(0, help="The same seed and messages give the same replies."),
    device: str = typer.Option(None, help="cpu, cuda or mps. [default: the best there is]"),
) -> None:
    """Talk with a model: type a message, read the reply. /reset, /save FILE, /quit.

    \b
    clearhead chat smollm2
    """
    from clearhead.errors import UserError
    from clearhead.language_model import load

    loaded = load(model, device)
    loaded.chat_text([{"role": "user", "content": "Hello"}])  # says at once if it cannot
    settings = {
        "tokens": tokens,
        "temperature": temperature,
        "top_p": top_p,
        "repetition_penalty": repetition_penalty,
        "seed": seed,
    }
    conversation = Conversation(loaded, system, settings)
    err.print(f"{model}: {HELP}", style="dim")
    while (line := _ask()) is not None:
        message = line.strip()
        if message in ("/quit", "/exit"):
            break
        if not message:
            continue
        try:
            if message.startswith("/"):
                err.print(conversation.obey(message), style="dim")
            else:
                conversation.reply(message)
        except UserError as error:
            err.print(f"clearhead: {error}")
        except KeyboardInterrupt:
            print_text("\n")  # the reply ends here; the conversation goes on


class Conversation:
    """What was said, and a model to go on with it."""

    def __init__(self, model: LanguageModel, system: str | None, settings: dict[str, Any]) -> None:
        self.model, self.settings = model, settings
        self.opening = [{"role": "system", "content": system}] if system else []
        self.messages = list(self.opening)

    def reply(self, message: str) -> None:
        """Print the reply as it comes. What was begun is kept, also where it is broken off."""
        from clearhead.errors import UserError

        asked = [*self.messages, {"role": "user", "content": message}]
        ids = self.model.chat_ids(asked)
        if len(ids) >= self.model.config.n_context:
            raise UserError(
                f"the conversation has grown to {len(ids)} tokens, and this model can look back on "
                f"{self.model.config.n_context}: /reset to begin anew"
            )
        pieces: list[str] = []
        try:
            for piece in self.model.stream(ids, **self.settings):
                pieces.append(piece)
                print_text(piece)
            print_text("\n")
        finally:
            self.messages = [*asked, {"role": "assistant", "content": "".join(pieces)}]

    def obey(self, command: str) -> str:
        """Do what a command says, and say what was done."""
        from clearhead.errors import UserError
        from clearhead.files import write_text

        name, _, rest = command.partition(" ")
        if name == "/reset":
            self.messages = list(self.opening)
            return "forgotten"
        if name == "/save" and rest.strip():
            path, line = Path(rest.strip()), json.dumps({"messages": self.messages}, ensure_ascii=False)
            try:
                before = path.read_text(encoding="utf-8") if path.exists() else ""
                write_text(path, f"{before}{line}\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is no text"
                raise UserError(f"{path} cannot be written: {reason}; choose another name") from None
            return f"{len(self.messages)} messages saved to {path}; train --from a model can learn from it"
        return HELP


def _ask() -> str | None:
    """A line, with a prompt where there is someone to see it; none at the end."""
    if sys.stdin.isatty():
        print_text("> ")
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        return None
    return line or None
