"""`clearhead chat`: a conversation with a model."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from clearhead.cli.completion import complete_models
from clearhead.cli.console import err, print_text
from clearhead.cli.options import DEVICE, QUANTIZE, generation_option

if TYPE_CHECKING:
    from clearhead.language_model import LanguageModel

HELP = "/reset starts over, /save FILE saves the conversation (as one line of a .jsonl file), /quit exits"


def chat(
    model: str = typer.Argument(
        ...,
        metavar="MODEL",
        help="A model: a folder, a GGUF file, or the name of a pulled model.",
        autocompletion=complete_models,
    ),
    system: str = typer.Option(None, help="System prompt."),
    tokens: int = generation_option("tokens", 512),
    temperature: float = generation_option("temperature", 0.7),
    top_k: int = generation_option("top_k"),
    top_p: float = generation_option("top_p", 0.9),
    min_p: float = generation_option("min_p"),
    repetition_penalty: float = generation_option("repetition_penalty"),
    presence_penalty: float = generation_option("presence_penalty"),
    frequency_penalty: float = generation_option("frequency_penalty"),
    seed: int = generation_option("seed"),
    plain_chat: bool = typer.Option(
        True, help="Let a model without a chat template continue the conversation as plain text."
    ),
    device: str = DEVICE,
    quantize: str = QUANTIZE,
) -> None:
    """Chat with a model: type a message, read the reply. Commands: /reset, /save FILE, /quit.

    \b
    For example:
      clearhead chat smollm2
      clearhead chat smollm2 --system "Answer in one sentence."
    """
    from clearhead.errors import UserError
    from clearhead.generate.sampling import Sampling, check_options
    from clearhead.language_model import load

    sampling: dict[str, Any] = {
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty,
    }
    Sampling(**sampling)  # fails early if the options are invalid
    check_options(tokens=tokens, seed=seed)
    loaded = load(model, device, quantize=quantize)
    if loaded.tokenizer.chat_template is not None:
        loaded.chat_text(
            [{"role": "user", "content": "Hello"}]
        )  # fails early if the chat template does not work
    elif plain_chat:
        err.print(f"{model} has no chat template: it continues the conversation as plain text", style="dim")
    else:
        raise UserError(
            f"{model} has no chat template: it was not trained on conversations; omit --no-plain-chat, or use "
            "clearhead generate"
        )
    settings = {**sampling, "tokens": tokens, "seed": seed}
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
            print_text("\n")  # the reply ends here; the conversation continues


class Conversation:
    """The messages so far, and the model that replies."""

    def __init__(self, model: LanguageModel, system: str | None, settings: dict[str, Any]) -> None:
        self.model, self.settings = model, settings
        self.opening = [{"role": "system", "content": system}] if system else []
        self.messages = list(self.opening)
        self.saved: dict[Path, str] = {}  # the line of this conversation in each file it was saved to

    def reply(self, message: str) -> None:
        """Print the reply as it is generated. If interrupted, keep the part generated so far."""
        from clearhead.errors import UserError

        asked = [*self.messages, {"role": "user", "content": message}]
        ids = self._encode(asked)
        if len(ids) >= self.model.config.n_context:
            raise UserError(
                f"the conversation has {len(ids)} tokens, which leaves no room for a reply in this model's "
                f"context of {self.model.config.n_context}: use /reset to start over"
            )
        pieces: list[str] = []
        try:
            for piece in self.model.stream(ids, **self.settings):
                pieces.append(piece)
                print_text(piece)
            print_text("\n")
        finally:
            self.messages = [*asked, {"role": "assistant", "content": "".join(pieces)}]

    def _encode(self, messages: list[dict[str, str]]) -> list[int]:
        """Encode the prompt as the server does: with the chat template or, without one, as plain text."""
        from clearhead.text.conversations import render_plainly
        from clearhead.text.inputs import encode_prompt

        tokenizer = self.model.tokenizer
        if tokenizer.chat_template is not None:
            return self.model.chat_ids(messages)
        return encode_prompt(render_plainly(messages) or None, tokenizer, self.model.config.n_vocab)

    def obey(self, command: str) -> str:
        """Run a slash command and return its message."""
        name, _, rest = command.partition(" ")
        if name == "/reset":
            self.messages, self.saved = list(self.opening), {}
            return "the conversation was reset"
        if name == "/save" and _unquote(rest):
            return self.save(_unquote(rest))
        return HELP

    def save(self, name: str) -> str:
        """Save the conversation as one line of a file; saving again replaces that line."""
        from clearhead.errors import UserError
        from clearhead.text.conversations import SUFFIX, save_conversation

        if self.messages == self.opening:
            return "there is nothing to save yet: say something first"
        try:
            path = Path(name).expanduser()
            if path.is_dir():
                raise UserError(f"{path} is a folder")
            named = path.suffix.lower() == SUFFIX
            path = path if named else path.with_name(f"{path.name}{SUFFIX}")
            real = Path(os.path.realpath(path))  # write through links instead of replacing them
            self.saved[real], number = save_conversation(real, self.messages, self.saved.get(real))
        except UserError as error:
            raise UserError(f"nothing was saved: {error}; choose another name") from None
        except (OSError, RuntimeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UserError(f"{name} cannot be written: {reason}; choose another name") from None
        message = f"{len(self.messages)} messages saved to {path}, as line {number}"
        if not named:
            return f"{message} ({SUFFIX} was added: train reads conversations only from such files)"
        return f"{message}; train --from MODEL can fine-tune on it"


def _unquote(name: str) -> str:
    """The name without the quotes that a shell would remove."""
    name = name.strip()
    quoted = len(name) > 1 and name[0] == name[-1] and name[0] in "\"'"
    return name[1:-1] if quoted else name


def _ask() -> str | None:
    """Read a line, with a prompt on a terminal; None at the end of input."""
    if sys.stdin.isatty():
        print_text("> ")
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        return None
    return line or None
