"""`clearhead.toml`: user-defined defaults for the options of commands.

The file is read from the working folder only, beside runs/. CLEARHEAD_CONFIG names a different file; if that
variable is empty, no file is read. Each command has a table (`[train]`, `[lab.stream]`), and each option a key:
its long name without the dashes.

The folder, and the file with it, may come from someone else. The file may therefore set how things are done,
but not what is read, written or sent, or who has access: those must be given on the command line.
"""

from __future__ import annotations

import json
import os
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union, get_args, get_origin

import typer
from typer.core import TyperGroup

from clearhead.errors import UserError, guess
from clearhead.files import open_regular, read_all

NAME, VARIABLE = "clearhead.toml", "CLEARHEAD_CONFIG"
LARGEST = 2**13  # bytes; Python takes a second to read a key with thousands of dots

# Besides numeric options, the file may set these. Other switches and strings must be typed.
HARMLESS = frozenset(
    (
        "bidirectional",
        "compiled",
        "deterministic",
        "device",
        "dtype",
        "kind",
        "no_browser",
        "optimizer",
        "plain_chat",
        "preset",
        "quantize",
        "recipe",
        "sharded",
        "shift",
        "stop",
        "system",
        "tensorboard",
        "tokenizer",
    )
)
# All options of a lab may be set except these.
OF_EVERY_LAB = frozenset(("model", "figure", "json", "csv"))
# Mutually exclusive options. If one is typed, the file's values for the others are ignored.
EXCLUSIVE = {"train": [{"minutes", "steps"}], "inspect": [{"block", "head", "site", "sites"}]}

Defaults = dict[str, Any]


def find() -> Path | None:
    """The config file in use, if any."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        return Path(given) if given else None
    path = Path(NAME)
    return path if os.path.lexists(path) else None


def read(path: Path, app: Any) -> Defaults:
    """The defaults in the file, in the form click expects; invalid ones raise an error."""
    import tomllib

    try:
        with open_regular(path, "a settings file") as file:
            text = read_all(file, LARGEST + 1)
        if len(text) > LARGEST:
            raise UserError(f"{path} has more than {LARGEST} bytes; is it the right file?")
        document = tomllib.loads(text.decode())
    except FileNotFoundError:
        if VARIABLE not in os.environ:
            raise UserError(f"{path} is a link to a file that does not exist: remove it") from None
        raise UserError(
            f"no such file: {path}, named by {VARIABLE}; create it, or unset {VARIABLE}"
        ) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not valid TOML: {error or 'it is nested too deeply'}") from None
    return _read_tables(document, app, str(path), "")


def give_way(context: typer.Context) -> None:
    """Let options typed on the command line override conflicting ones in the file."""
    for names in EXCLUSIVE.get(context.command.name or "", ()):
        if any(_source(context, name) == "COMMANDLINE" for name in names):
            for option in [each for each in _from_file(context) if each.name in names]:
                context.params[option.name] = option.default
                context.set_parameter_source(option.name, None)  # type: ignore[arg-type]


def list_taken(context: typer.Context) -> list[str]:
    """The options taken from the file, one per line; none on ranks other than 0."""
    if (path := find()) is None or os.environ.get("RANK", "0") != "0":
        return []
    return [f"{path}: {_name(each)} = {_shown(context.params[each.name])}" for each in _from_file(context)]


def typed_again(context: typer.Context) -> list[str]:
    """The options taken from the file, as they would be typed, so that a resumed run does not depend on the file."""
    arguments: list[str] = []
    for option in _from_file(context):
        value = context.params[option.name]
        if option.is_flag:
            arguments += [option.opts[0]] if value else option.secondary_opts[:1]
        else:
            for each in value if option.multiple else [value]:
                arguments += [option.opts[0], str(each)]
    return arguments


def _read_tables(document: dict[str, Any], group: TyperGroup, where: str, inside: str) -> Defaults:
    defaults: Defaults = {}
    for name, table in document.items():
        command = group.commands.get(name)
        if not isinstance(table, dict):
            such = "lab.attention" if inside else "train"
            raise UserError(
                f"{where}: {inside}{name} is outside any command's table: put it under one, such as [{such}]"
            )
        if command is None:
            raise UserError(f"{where}: [{inside}{name}] is not a command{guess(name, group.commands)}")
        if isinstance(command, TyperGroup):
            defaults[name] = _read_tables(table, command, where, f"{name}.")
        else:
            defaults[name] = _read_options(table, command, f"{where}: [{inside}{name}]", inside == "lab.")
    return defaults


def _read_options(table: Defaults, command: Any, where: str, of_lab: bool) -> Defaults:
    known = {_name(each): each for each in options(command)}
    defaults: Defaults = {}
    for key, value in table.items():
        option = known.get(key)
        if option is None:
            raise UserError(f"{where} has no option {key!r}{guess(key, known)}")
        if not may_be_set(option, of_lab):
            raise UserError(f"{where} {key} cannot be set in a file: type --{key} instead")
        defaults[option.name] = _check(option, value, f"{where} {key} = {_shown(value)}")
    return defaults


def kind_of(option: Any) -> type:
    """bool, int, float, str or Path; for a list, the type of its items."""
    kind = option.type_descriptor.annotation
    while get_origin(kind) in (list, tuple, Union, types.UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    return bool if option.is_flag else kind


def options(command: Any) -> Iterator[Any]:
    return (each for each in command.params if each.param_type_name == "option" and each.name != "help")


def flag(option: Any) -> str:
    """The option as it is typed: --learning-rate, even if it has a short form."""
    return f"--{_name(option)}"


def show_key(name: str, context: typer.Context) -> str:
    """Where the file sets the option with this name, such as `clearhead.toml: top-p =`; empty if it does not."""
    return next((f"{find()}: {_name(each)} =" for each in _from_file(context) if each.name == name), "")


def may_be_set(option: Any, of_lab: bool = False) -> bool:
    if of_lab:
        return option.name not in OF_EVERY_LAB
    return kind_of(option) in (int, float) or option.name in HARMLESS


def _check(option: Any, value: Any, said: str) -> Any:
    kind = kind_of(option)
    if option.multiple:
        if not isinstance(value, list) or not all(_fits(each, kind) for each in value):
            raise UserError(f'{said}: expected a list, such as ["a", "b"]')
        return value
    if not _fits(value, kind):
        raise UserError(f"{said}: expected {expected(option)}")
    if (option.min is not None and value < option.min) or (option.max is not None and value > option.max):
        raise UserError(f"{said}: expected {expected(option)}")
    return value


def expected(option: Any) -> str:
    """The values that an option takes, in words."""
    kinds = {bool: "true or false", int: "an integer", float: "a number"}
    kind = kinds.get(kind_of(option), "a quoted string")
    least, most = option.min, option.max
    if least is None:
        return kind
    return f"{kind} of at least {least}" if most is None else f"{kind} from {least} to {most}"


def _fits(value: Any, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _from_file(context: typer.Context) -> list[Any]:
    return [each for each in options(context.command) if _source(context, each.name) == "DEFAULT_MAP"]


def _source(context: typer.Context, name: str) -> str:
    source = context.get_parameter_source(name)
    return "" if source is None else source.name


def _name(option: Any) -> str:
    """learning-rate for --learning-rate."""
    return next(each for each in option.opts if each.startswith("--")).removeprefix("--")


def _shown(value: Any) -> str:
    """A value in TOML notation, except for dates."""
    return json.dumps(value, ensure_ascii=False, default=str)
