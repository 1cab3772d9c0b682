"""The chat template renderer: a separate process with limits that a hostile template cannot exceed.

Reads a JSON request on stdin: a template and sets of values. Answers each set with a line of JSON on stdout:
{"text": …}, or {"refused": …} if the template rejects the messages, or {"wrong": …} if the template fails.
Each rendering has its own limits.

A template is a small program written by whoever made the model. Jinja's sandbox isolates it from the machine, but
does not prevent endless loops or huge strings: the operating system's limits do.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

LONGEST_OUTPUT = 2**23  # characters
MOST_MEMORY = 160 * 2**20  # bytes, of which Python and jinja need about 25 million
MOST_SECONDS = 0.7  # CPU seconds, once everything is imported

TOO_BIG = {"wrong": "needs too much memory"}


class Generation(Extension):
    """`{% generation %}` marks what the model should learn; its content is rendered between two markers."""

    tags = {"generation"}  # noqa: RUF012 (as jinja declares it)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        mark = getattr(self.environment, "mark", "")
        if mark:
            edge: list[nodes.Node] = [nodes.Output([nodes.TemplateData(mark)], lineno=line)]
            body = [*edge, *body, *edge]
        return nodes.Scope(body, lineno=line)


class PlainNamespace(Namespace):
    """A namespace without names like `__html__`, which Python would call implicitly."""

    def __init__(*args: Any, **values: Any) -> None:  # so that a value can be named `self`
        self, *pairs = args
        given = dict(*pairs, **values)
        for name in given:
            _refuse_hidden(name)
        Namespace.__init__(self, given)

    def __setitem__(self, name: str, value: Any) -> None:
        _refuse_hidden(name)
        super().__setitem__(name, value)


def _refuse_hidden(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(f"{name!r} cannot be stored in a namespace")


class RefusalError(Exception):
    """Raised by the template through `raise_exception`."""


def _raise_exception(message: object) -> None:
    raise RefusalError(str(message))


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Serialize to JSON without escaping < and > for HTML, unlike Jinja's own filter."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def environment() -> ImmutableSandboxedEnvironment:
    """The environment that templates are written for: transformers' settings, filters and globals."""
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    made.filters["tojson"] = _tojson
    made.globals |= {
        "raise_exception": _raise_exception,
        "strftime_now": _strftime_now,
        "namespace": PlainNamespace,
    }
    return made


@lru_cache(maxsize=1)
def _compile(template: str, mark: str) -> jinja2.Template:
    made = environment()
    made.extend(mark=mark)
    return made.from_string(template)


def fill(template: str, values: Mapping[str, Any], mark: str = "") -> dict[str, str]:
    """The rendered text, or an error."""
    try:
        pieces, length = [], 0
        for piece in _compile(template, mark).generate(values):
            pieces.append(piece)
            length += len(piece)
            if length > LONGEST_OUTPUT:
                return {"wrong": f"writes more than {LONGEST_OUTPUT} characters"}
        return {"text": "".join(pieces)}
    except RefusalError as refusal:
        return {"refused": str(refusal)}
    except jinja2.TemplateSyntaxError as error:
        return {"wrong": f"is not valid, line {error.lineno}: {error.message}"}
    except SecurityError as error:
        return {"wrong": f"does something forbidden: {error}"}
    except MemoryError:
        return TOO_BIG
    except RecursionError:
        return {"wrong": "recurses too deeply"}
    except Exception as error:  # a template is a program and can raise anything
        return {"wrong": f"fails: {type(error).__name__}: {error}"}


def _bound() -> None:
    """Set resource limits on this process. Windows has none; there, only the caller's timeout applies."""
    if sys.platform == "win32":
        return
    import resource

    _wind()
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        try:
            resource.setrlimit(kind, (MOST_MEMORY, MOST_MEMORY))
        except (ValueError, OSError):  # macOS does not support this limit
            continue


def _wind() -> None:
    """Restart the CPU time limit for the next rendering."""
    if sys.platform != "win32":
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # kills the process, whatever it is doing
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)


def main() -> None:
    request = json.loads(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"))
    _bound()
    for values in request["values"]:
        _wind()
        answer = fill(request["template"], values, request["mark"])
        try:
            written = json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass")
        except MemoryError:
            written = json.dumps(TOO_BIG).encode()
        sys.stdout.buffer.write(written + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
