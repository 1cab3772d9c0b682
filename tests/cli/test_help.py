"""Help for newcomers: examples that parse, and suggestions for misspellings."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from clearhead.cli.app import app

ROOT = typer.main.get_command(app)
COMMANDS = {
    (name, *inner): command
    for name, each in ROOT.commands.items()
    for inner, command in [
        ((), each),
        *(((sub,), lab) for sub, lab in getattr(each, "commands", {}).items()),
    ]
}


def examples(command):
    return re.findall(r"^ +(clearhead .+)$", command.help.split("For example:")[1], re.MULTILINE)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_examples_that_parse(words):
    lines = examples(COMMANDS[words])
    assert 1 <= len(lines) <= 3
    for line in lines:
        context = ROOT.make_context("clearhead", shlex.split(line)[1:])
        while (rest := [*context._protected_args, *context.args]) and hasattr(context.command, "commands"):
            name, command, left = context.command.resolve_command(context, rest)
            context = command.make_context(name, left, parent=context)  # raises on unknown options


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_examples_use_their_command(words):
    lines = examples(COMMANDS[words])
    assert any(shlex.split(line)[1 : 1 + len(words)] == list(words) for line in lines)


def test_command_list_is_not_truncated(clearhead, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for arguments in (["--help"], ["lab", "--help"]):
        listed = clearhead(*arguments).out.split("Commands:")[1]
        assert "..." not in listed
        assert max(map(len, listed.splitlines())) <= 80


@pytest.mark.parametrize("width", ["20", "40"])
def test_help_works_on_narrow_terminals(width, clearhead, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    for words in COMMANDS:
        assert clearhead(*words, "--help").code == 0


def test_version_is_printed(clearhead):
    assert re.fullmatch(r"clearhead \d+\.\d+\.\d+\n", clearhead("--version").out)


MISSPELLED = [
    (["trian"], ["'trian'", "did you mean 'train'? See clearhead --help"]),
    (["lab", "atention"], ["did you mean 'attention'? See clearhead lab --help"]),
    (["train", "my.txt", "--minuts", "3"], ["did you mean '--minutes'? See clearhead train --help"]),
    (["train", "my.txt", "--preset", "modren"], ["lecture, gpt2, modern; did you mean 'modern'?"]),
    (["demo", "--preset", "lectur"], ["lecture, gpt2, modern; did you mean 'lecture'?"]),
    (["train", "my.txt", "--kind", "lsmt"], ["did you mean 'lstm'?"]),
    (["train", "my.txt", "--tokenizer", "chars"], ["did you mean 'char'?"]),
    (["train", "my.txt", "--recipe", "clasic"], ["did you mean 'classic'?"]),
    (["train", "my.txt", "--optimizer", "adam"], ["did you mean 'adamw'?"]),
    (["pull", "smolm2"], ["did you mean 'smollm2'?"]),
    (["generate", "smolm2"], ["did you mean 'smollm2'?"]),
    (["wholly-unknown"], ["No such command 'wholly-unknown'; see clearhead --help"]),
]


@pytest.mark.parametrize(("arguments", "words"), MISSPELLED, ids=lambda value: " ".join(value)[:30])
def test_misspellings_get_suggestions(arguments, words, refused, tmp_path):
    refused(*arguments, words=words)


@pytest.mark.parametrize(
    ("arguments", "whose"),
    [
        (["generate", "my", "--quantize"], "clearhead generate"),
        (["generate", "my", "--top-k", "ten"], "clearhead generate"),
        (["generate", "my", "--json=yes"], "clearhead generate"),
        (["train", "my.txt", "--steps"], "clearhead train"),
        (["words", "my.bin", "--analogy", "king", "man"], "clearhead words"),
        (["lab", "stream", "--steps"], "clearhead lab stream"),
        (["--version=1"], "clearhead"),
    ],
    ids=lambda value: " ".join(value)[:30],
)
def test_option_value_errors_point_to_the_command_help(arguments, whose, refused):
    assert refused(*arguments).endswith(f"; see {whose} --help\n")


def test_misspelled_site_gets_a_suggestion(refused, model_folder):
    words = ["'block.0.head.0.wieghts'", "did you mean 'weights'?"]
    refused("inspect", model_folder, "The", "--site", "block.0.head.0.wieghts", words=words)
    words = ["'foo'", "embedding", "or one in a block or head, such as block.0.head.0.weights"]
    refused("inspect", model_folder, "The", "--site", "foo", words=words)


def test_misspelled_run_gets_a_suggestion(refused, copied_model):
    Path("runs").mkdir()
    copied_model.rename("runs/austen")
    words = ["no such folder or file: runs/austin;", "did you mean 'runs/austen'?"]
    refused("generate", "runs/austin", words=words)


def test_misspelled_text_gets_a_suggestion(refused):
    Path("plays.txt").write_text("To be, or not to be.", encoding="utf-8")
    refused("train", "plas.txt", words=["no such file: plas.txt;", "did you mean 'plays.txt'?"])
    refused("train", "nowhere/plays.txt", words=["no such file: nowhere/plays.txt;"])


def test_missing_run_is_not_looked_up_on_the_hub(refused):
    refused("generate", "runs/my", words=["no such folder or file: runs/my", "clearhead train"])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_names_values_plainly(words, clearhead):
    shown = clearhead(*words, "--help").out
    assert not re.search(r"<(str|int|float|path|list)|\[\[|[{}]|…\]", shown.partition("Options:")[0])
    assert not re.search(r"<(str|int|float|path|list)", shown)


def test_usage_lines_name_arguments(clearhead):
    assert "Usage: clearhead generate [OPTIONS] MODEL [PROMPT]\n" in clearhead("generate", "--help").out
    assert "Usage: clearhead serve [OPTIONS] MODEL...\n" in clearhead("serve", "--help").out
