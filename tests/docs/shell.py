"""The commands of a page: run in this process, or where that cannot be, held to what can be known of them."""

import importlib.util
import re
import tomllib

import typer

from clearhead.cli import run
from clearhead.cli.app import app
from tests.docs.pages import ROOT

# Each program and command that is not run here, with the reason; what else is known of it is still checked.
LEFT_OUT = {
    "pip": "installs packages: that the extras it names are there is checked",
    "make": "sets up an environment of its own: that the target is there is checked",
    "git": "changes the clone it is run in",
    "pre-commit": "changes the clone it is run in",
    ".venv/bin/pytest": "runs this very suite",
    "python": "a measurement takes minutes: that the module is there is checked",
    "torchrun": "starts processes and machines (tests/runs/test_workers.py): its command is parsed",
    "ollama": "another's program, which need not be here",
    "vllm": "another's program, which need not be here",
    "llama-cli": "another's program, which need not be here (tests/parity/test_llama_cpp.py)",
    "ssh": "another machine",
    "scp": "another machine",
    "curl": "asks a server that is not running here (tests/server)",
    "clearhead --install-completion": "writes into the reader's shell (tests/cli/test_completion.py)",
    "clearhead demo": "trains on 12,000 stories (tests/cli/test_good_use.py): its options are parsed",
    "clearhead explore": "serves until Ctrl-C (tests/cli/test_explore.py): its options are parsed",
    "clearhead serve": "serves until Ctrl-C (tests/server/test_run.py): its options are parsed",
    "clearhead pull": "fetches 98 MB (tests/cli/test_pull.py): its options are parsed",
    "clearhead publish": "builds a whole site (tests of its own): its options are parsed",
}


def perform(words):
    """Do what a reader does who types this."""
    program, *arguments = words
    left_out = LEFT_OUT.get(program) or LEFT_OUT.get(" ".join(words[:2]))
    if program == "clearhead" and not left_out:
        assert run(arguments) == 0, f"{words} failed"
        return
    assert left_out, f"{program}: a program that this test neither runs nor knows a reason not to"
    if program == "clearhead":
        parse(arguments)
    elif program == "make":
        target = arguments[0] if arguments else "demo"
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"make {target}"
    elif program == "python":
        assert arguments[0] == "-m", words
        name = arguments[1]
        assert importlib.util.find_spec(name), f"there is no module {name}"
    elif program == "pip":
        check_extras(words)
    elif program == "torchrun":
        module = arguments.index("-m")
        assert arguments[module + 1] == "clearhead"
        parse(arguments[module + 2 :])


def check_extras(words):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for word in words:
        if found := re.search(r"(?:clearhead|\.|\.whl)\[([\w,]+)\]", word):
            assert set(found[1].split(",")) <= set(project["optional-dependencies"]), word


def parse(arguments):
    """As the command line would, up to calling the command; what it refuses is raised."""
    command, rest = typer.main.get_command(app), list(arguments)
    if rest[0].startswith("-"):  # an option of no command, which would be done at once
        assert any(rest[0] in option.opts for option in command.params), rest[0]
        return
    context = command.make_context("clearhead", list(rest))
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
