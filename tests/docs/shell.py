"""Run a page's commands in this process; check those that cannot run here as far as possible."""

import importlib.util
import re
import tomllib

import typer

from clearhead.cli import run
from clearhead.cli.app import app
from tests.docs.pages import ROOT

# Programs and commands that are not run, with the reason and what is checked instead.
NOT_RUN = {
    "pip": "installs packages: the extras it names are checked",
    "make": "creates its own environment: the target is checked",
    "git": "modifies the clone it runs in",
    "pre-commit": "modifies the clone it runs in",
    ".venv/bin/pytest": "runs this test suite",
    "python": "takes minutes: the module is checked",
    "torchrun": "starts several processes (tests/runs/test_distributed.py): its command is parsed",
    "sbatch": "needs a cluster (tests/cli/test_slurm.py)",
    "ollama": "a third-party program that may not be installed",
    "vllm": "a third-party program that may not be installed",
    "llama-cli": "a third-party program that may not be installed (tests/parity/test_llama_cpp.py)",
    "nbgrader": "takes minutes (tests/classroom/test_nbgrader.py)",
    "lm_eval": "may not be installed (tests/parity/test_harness.py)",
    "otter": "may not be installed (tests/classroom/test_otter.py)",
    "ssh": "needs another machine",
    "scp": "needs another machine",
    "curl": "needs a running server (tests/server)",
    "clearhead --install-completion": "modifies the user's shell (tests/cli/test_completion.py)",
    "clearhead demo": "trains on 12,000 stories (tests/cli/test_good_use.py): its options are parsed",
    "clearhead explore": "serves until Ctrl-C (tests/cli/test_explore.py): its options are parsed",
    "clearhead serve": "serves until Ctrl-C (tests/server/test_process.py): its options are parsed",
    "clearhead pull": "downloads 98 MB (tests/cli/test_pull.py): its options are parsed",
    "clearhead publish": "builds a whole site (it has its own tests): its options are parsed",
}


def run_or_check(words):
    """Run a command as a reader would type it, or check it if it is listed in NOT_RUN."""
    program, *arguments = words
    reason = NOT_RUN.get(program) or NOT_RUN.get(" ".join(words[:2]))
    if program == "clearhead" and not reason:
        assert run(arguments) == 0, f"{words} failed"
        return
    assert reason, f"{program} is neither run by this test nor listed in NOT_RUN"
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
        if match := re.search(r"(?:clearhead|\.|\.whl)\[([\w,]+)\]", word):
            assert set(match[1].split(",")) <= set(project["optional-dependencies"]), word


def parse(arguments):
    """Parse arguments as the command line would, without running the command; invalid arguments raise."""
    command, rest = typer.main.get_command(app), list(arguments)
    if rest[0].startswith("-"):  # a top-level option, which would take effect immediately
        assert any(rest[0] in option.opts for option in command.params), rest[0]
        return
    context = command.make_context("clearhead", list(rest))
    while hasattr(command, "resolve_command"):
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
