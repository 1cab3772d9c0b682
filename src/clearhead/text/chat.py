"""A conversation as the text that a model was trained to go on from: its chat template, filled in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from clearhead.errors import UserError

LONGEST_TEMPLATE = 2**18  # characters; those of published models have up to some 20,000
LONGEST_MESSAGES = 2**22  # characters, all messages together
LONGEST_WAIT = 10.0  # seconds; the bound on the processor's time is less, but a machine can be busy


def render(
    template: str,
    messages: Sequence[Mapping[str, str]],
    *,
    bos: str = "",
    eos: str = "",
    add_generation_prompt: bool = True,
) -> str:
    """What the template makes of the messages, the same as in transformers.

    The template comes with the model and is not trusted: it is filled in by a process of its own.
    """
    if len(template) > LONGEST_TEMPLATE:
        raise UserError(
            f"the chat template has {len(template)} characters, expected at most {LONGEST_TEMPLATE}; "
            "is it the right one?"
        )
    values = {
        "messages": check_messages(messages),
        "tools": None,
        "documents": None,
        "bos_token": bos,
        "eos_token": eos,
        "add_generation_prompt": add_generation_prompt,
    }
    answer = _ask({"template": template, "values": values})
    if "refused" in answer:
        why = _one_line(answer["refused"])
        raise UserError(f"the chat template refuses these messages: {why}; change the messages")
    if "wrong" in answer:
        raise UserError(f"the chat template {_one_line(answer['wrong'])}; use a model with another")
    return answer["text"]


def check_messages(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The messages, if each has a role and a content, both text."""
    expected = 'expected {"role": …, "content": …}, both text'
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise UserError(f"the messages are a {type(messages).__name__}: expected a list; each {expected}")
    if not messages:
        raise UserError("there are no messages: expected at least one")
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise UserError(f"message {i} is a {type(message).__name__}: {expected}")
        if missing := {"role", "content"} - set(message):
            raise UserError(f"message {i} lacks its {' and '.join(sorted(missing))}: {expected}")
        if set(message) != {"role", "content"}:
            raise UserError(
                f"message {i} has {_one_line(', '.join(map(str, message)) or 'nothing')}: {expected}"
            )
        for name, value in message.items():
            if not isinstance(value, str):
                raise UserError(f"message {i}: its {name} is a {type(value).__name__}; {expected}")
    length = sum(len(message["content"]) + len(message["role"]) for message in messages)
    if length > LONGEST_MESSAGES:
        raise UserError(
            f"the messages have {length} characters, expected at most {LONGEST_MESSAGES}; leave some out"
        )
    return [dict(message) for message in messages]


def _ask(request: dict[str, Any]) -> dict[str, str]:
    # Some systems map a file of all locales into memory, which would count against the template.
    surroundings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)),
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "clearhead.text.chat_renderer"],
            input=json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=surroundings,
            timeout=LONGEST_WAIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"wrong": "takes too long"}
    if done.returncode < 0:  # ended by a signal
        return {"wrong": "takes too long" if -done.returncode == signal.SIGPROF else "needs too much memory"}
    assert done.returncode == 0, f"the renderer ended with {done.returncode}"
    answer: dict[str, str] = json.loads(done.stdout.decode("utf-8", "surrogatepass"))
    return answer


def _one_line(text: str, longest: int = 200) -> str:
    """A stranger's words, without what could move a terminal's cursor, and not too many of them."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).rstrip(".")
    return line if len(line) <= longest else line[: longest - 1] + "…"
