"""Chat templates: a conversation in the prompt format that a model was trained on."""

from __future__ import annotations

import json
import re
import secrets
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clearhead.errors import UserError
from clearhead.processes import python, python_environment

LONGEST_TEMPLATE = 2**18  # characters; published templates have up to about 20,000
LONGEST_MESSAGES = 2**22  # characters, all messages together
MOST_AT_ONCE, MOST_CONVERSATIONS = 2**19, 500  # characters and conversations per renderer process
LONGEST_WAIT = 10.0  # seconds of wall time; the limit on CPU time is lower, but a machine can be busy

_GENERATION = re.compile(r"\{%[-+]?\s*generation\b")


def render(
    template: str,
    messages: Sequence[Mapping[str, str]],
    *,
    bos: str = "",
    eos: str = "",
    add_generation_prompt: bool = True,
) -> str:
    """Render the messages with the template, with the same result as transformers.

    The template comes with the model and is not trusted: a separate process renders it.
    """
    _check_template(template)
    values = _values(check_messages(messages), bos, eos, add_generation_prompt)
    return _text(_ask(template, [values])[0])


def render_all(
    template: str, given: Sequence[Mapping[str, Any]], *, bos: str = "", eos: str = ""
) -> list[str | None]:
    """Render several sets of `messages`, `tools` and `prompt` (whether to add the generation prompt).

    The messages are not checked. The result is None where the template rejects them, or fails.
    """
    _check_template(template)
    values = [_values(each["messages"], bos, eos, each["prompt"], each["tools"]) for each in given]
    answers = [answer.get("text") for answer in _ask(template, values)]
    return answers + [None] * (len(given) - len(answers))


def render_tools(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    tools: Sequence[Mapping[str, Any]] | None,
    *,
    bos: str = "",
    eos: str = "",
) -> str:
    """Render messages, which may contain tool calls and tool results, with the generation prompt."""
    _check_template(template)
    return _text(_ask(template, [_values(messages, bos, eos, True, tools)])[0])


ReplySpan = tuple[int, int]  # where a reply starts in the text, and where it ends


def render_replies(
    template: str, conversations: Sequence[Sequence[Mapping[str, str]]], *, bos: str = "", eos: str = ""
) -> Iterator[tuple[str, list[ReplySpan]] | UserError]:
    """The text of each conversation and the spans of the assistant's replies in it, or an error.

    A reply is what the template marks with {% generation %}; without such marks, it is what follows the
    preceding messages rendered with the generation prompt, including the tokens that end the reply.
    """
    _check_template(template)
    marked = _GENERATION.search(template) is not None
    mark = f"[{secrets.token_hex(16)}]" if marked else ""
    asked: list[list[dict[str, Any]]] = []
    length = 0
    for conversation in conversations:
        whole = [dict(message) for message in conversation]
        asked.append([_values(whole, bos, eos, False)])
        for i, message in enumerate(whole):
            if message["role"] == "assistant" and not marked:
                asked[-1].append(_values(whole[:i], bos, eos, True))
                asked[-1].append(_values(whole[: i + 1], bos, eos, False))
        length += sum(_length(values["messages"]) for values in asked[-1])
        if length > MOST_AT_ONCE or len(asked) >= MOST_CONVERSATIONS:
            yield from _answer_all(template, asked, mark)
            asked, length = [], 0
    if asked:
        yield from _answer_all(template, asked, mark)


def _answer_all(
    template: str, asked: list[list[dict[str, Any]]], mark: str
) -> Iterator[tuple[str, list[ReplySpan]] | UserError]:
    answers = iter(_ask(template, [values for each in asked for values in each], mark))
    for each in asked:
        try:
            texts = [_text(next(answers)) for _ in each]
            yield _split_marked(texts[0], mark) if mark else _find_replies(texts[0], texts[1:])
        except UserError as error:
            yield error
        except StopIteration:
            return


def _split_marked(text: str, mark: str) -> tuple[str, list[ReplySpan]]:
    plain, replies = "", []
    for i, piece in enumerate(text.split(mark)):
        if i % 2 == 1:
            replies.append((len(plain), len(plain) + len(piece)))
        plain += piece
    return plain, replies


def _find_replies(whole: str, parts: list[str]) -> tuple[str, list[ReplySpan]]:
    replies = []
    for before, through in zip(parts[::2], parts[1::2], strict=True):
        if not (through.startswith(before) and whole.startswith(through)):
            raise UserError(
                "the chat template renders a reply differently when more messages follow, so it cannot be located "
                "in the text: use conversations with a single reply, as the last message"
            )
        replies.append((len(before), len(through)))
    return whole, replies


def _check_template(template: str) -> None:
    if len(template) > LONGEST_TEMPLATE:
        raise UserError(
            f"the chat template has {len(template)} characters, expected at most {LONGEST_TEMPLATE}: "
            "is it the right one?"
        )


def _values(
    messages: Sequence[Mapping[str, Any]],
    bos: str,
    eos: str,
    prompt: bool,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    return {
        "messages": messages,
        "tools": tools or None,
        "documents": None,
        "bos_token": bos,
        "eos_token": eos,
        "add_generation_prompt": prompt,
    }


def _text(answer: dict[str, str]) -> str:
    if "refused" in answer:
        why = _one_line(answer["refused"])
        raise UserError(f"the chat template rejects these messages: {why}")
    if "wrong" in answer:
        raise UserError(f"the chat template {_one_line(answer['wrong'])}: use another model")
    return answer["text"]


def _length(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(message["content"]) + len(message["role"]) for message in messages)


def check_messages(messages: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """The messages, validated: each has a role and content, both strings."""
    expected = 'expected {"role": …, "content": …}, both strings'
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise UserError(
            f"the messages are a {type(messages).__name__}: expected a list; for each message, {expected}"
        )
    if not messages:
        raise UserError("there are no messages: expected at least one")
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise UserError(f"message {i} has type {type(message).__name__}: {expected}")
        if missing := {"role", "content"} - set(message):
            raise UserError(f"message {i} has no {' and no '.join(sorted(missing))}: {expected}")
        if set(message) != {"role", "content"}:
            raise UserError(
                f"message {i} has {_one_line(', '.join(map(str, message)) or 'nothing')}: {expected}"
            )
        for name, value in message.items():
            if not isinstance(value, str):
                raise UserError(f"message {i}: its {name} has type {type(value).__name__}; {expected}")
    length = _length(messages)
    if length > LONGEST_MESSAGES:
        raise UserError(
            f"the messages have {length} characters, expected at most {LONGEST_MESSAGES}: remove some"
        )
    return [dict(message) for message in messages]


def _ask(template: str, values: list[dict[str, Any]], mark: str = "") -> list[dict[str, str]]:
    """An answer for each set of values, in order. If one of them ends the process, its answer is the last."""
    request = {"template": template, "values": values, "mark": mark}
    answers: list[dict[str, str]] = []
    wait = LONGEST_WAIT + len(values) - 1  # the limit on CPU time is less than a second per rendering
    # Some systems map a file of all locales into memory, which would count against the limit.
    try:
        done = subprocess.run(  # noqa: S603 (Python itself)
            python("clearhead.text.chat_renderer"),
            input=json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=python_environment(LC_ALL="C"),
            timeout=wait,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return [{"wrong": "takes too long"}]
    # A line is complete only if it ends with a newline.
    for line in done.stdout.split(b"\n")[:-1]:
        answers.append(json.loads(line.decode("utf-8", "surrogatepass")))
    if done.returncode < 0:  # ended by a signal
        late = -done.returncode == signal.SIGPROF
        return [*answers, {"wrong": "takes too long" if late else "needs too much memory"}]
    assert done.returncode == 0, f"the renderer exited with code {done.returncode}"
    return answers


def _one_line(text: str, longest: int = 200) -> str:
    """Untrusted text as one short line, without terminal control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).rstrip(".")
    return line if len(line) <= longest else line[: longest - 1] + "…"
