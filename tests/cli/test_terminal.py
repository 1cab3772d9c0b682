"""No command lets a terminal obey what a text, a name, a token or a file says."""

import ast
import io
import json
import os
import re
import sys
import threading
from pathlib import Path

import gguf
import pytest
import torch
from rich.console import Console

import clearhead.cli
from clearhead.cli import console, run
from clearhead.cli.app import app
from clearhead.cli.completion import complete_models
from clearhead.formats.places import name_models
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

if sys.platform == "win32":
    pytest.skip("pseudo-terminals exist only on Unix", allow_module_level=True)

import termios

# Set the title, clear the screen, ask for an answer, reset, blink on magenta; as C1 controls; reversed order; a bell.
HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[6n\x1bc\x1b[5;35;45m\x9b2J\x9d0;owned\x9c\u202eabc\u202c\u2066\x08\x07\x7f\r"
)
NAME = HOSTILE.replace("/", "") + "name"  # of a file, a folder or a word
TEXT = f"Once {HOSTILE} upon a time, {HOSTILE}the cat sat. " * 30
# The sequences that rich itself writes: styles, and moves and erasures within its lines.
OWN = re.compile(r"\x1b\[(?!5;35;45m)[0-9;]*m|\x1b\[\d*[ABCDGK]|\x1b\[\?25[lh]|\r")
TEMPLATE = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
SMALL = ("--blocks", "1", "--width", "16", "--heads", "1", "--context", "32", "--tokenizer", "char")


def make_model(kind="modern", mask=False, tokens="char"):
    """A model that generates control characters as readily as any other."""
    tokenizer = Tokenizer.train(tokens, [TEXT], mask=mask)
    tokenizer = Tokenizer(tokenizer._inner, {**tokenizer.config, "chat_template": TEMPLATE})
    torch.manual_seed(0)
    sizes = {"n_context": 512, "n_block": 1, "n_head": 2, "d_model": 16, "causal": not mask}
    return LanguageModel(Transformer(preset(kind, n_vocab=tokenizer.n_vocab, **sizes)), tokenizer)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a hostile text, models, a run's folder and word vectors, all with hostile names."""
    place = tmp_path_factory.mktemp("hostile")
    (place / NAME).mkdir()
    for name in ("plain.txt", f"{NAME}.txt"):
        (place / name).write_text(TEXT, encoding="utf-8")
    make_model().save(place / "runs" / NAME)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gguf.GGUFWriter, "add_name", lambda writer, _: writer.add_license(HOSTILE))
        make_model(tokens="byte").export(place / "runs" / f"{NAME}.gguf")
    make_model(mask=True).save(place / "filler")
    pair = {"good": "the cat", "bad": f"cat the {HOSTILE}", "category": HOSTILE}
    (place / f"{NAME}.jsonl").write_text(json.dumps(pair) + "\n")
    (place / "vectors.txt").write_text(
        f"3 2\nthe 1 0\n{NAME.replace(chr(13), '')} 0.9 0.1\ncat 0 1\n", encoding="utf-8", newline=""
    )
    return place


@pytest.fixture
def shown(place, monkeypatch):
    """Run a command in this process with a terminal of 80 columns as its streams; return what reaches it."""
    monkeypatch.chdir(place)

    def call(*arguments, typed=""):
        master, slave = os.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        settings = termios.tcgetattr(slave)
        settings[3] &= ~termios.ECHO  # the terminal itself shows what is typed
        termios.tcsetattr(slave, termios.TCSANOW, settings)
        received = bytearray()

        def receive():
            try:
                while data := os.read(master, 2**16):
                    received.extend(data)
            except OSError:  # the other end is closed
                pass

        thread = threading.Thread(target=receive)
        thread.start()
        os.write(master, typed.encode())
        with io.FileIO(slave, "r+b") as raw, pytest.MonkeyPatch.context() as patch:
            output = io.TextIOWrapper(raw, "utf-8", errors="replace", write_through=True)
            patch.setattr(sys, "stdout", output)
            patch.setattr(sys, "stderr", output)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.FileIO(os.dup(slave)), "utf-8"))
            patch.setenv("TERM", "xterm-256color")
            for each in (console.out, console.err):
                patch.setattr(each, "_color_system", Console(force_terminal=True)._color_system)
            code = run([str(each) for each in arguments])
            sys.stdin.close()
            output.detach()
        thread.join(60)
        os.close(master)
        return code, received.decode()

    return call


def check(text):
    own = OWN.sub("", text)
    raw = [character for character in own if character not in "\n\t" and console.CONTROL.match(character)]
    assert not raw, f"{raw[0]!a} in {own[max(0, own.index(raw[0]) - 100) :][:200]!a}"
    assert HOSTILE not in text


MODEL, FILE = f"runs/{NAME}", f"{NAME}.txt"
QUIET = ("--device", "cpu")
# Each command, what is typed, whether it succeeds.
COMMANDS = [
    (("doctor",), "", None),
    (("train", FILE, "--out", f"runs/{NAME}-own", "--steps", 2, *QUIET, *SMALL), "", True),
    (("train", FILE, "--resume", "--out", f"runs/{NAME}-own", *QUIET), "", True),
    (("train", f"{NAME}-not.txt"), "", False),
    (("train", "plain.txt", "--preset", HOSTILE), "", False),
    (("slurm", "--", FILE, "--steps", 2, "--out", f"runs/{NAME}-job"), "", True),
    (("runs",), "", True),
    (("models",), "", True),
    (("models", "--json"), "", True),
    (("models", NAME), "", True),
    (("models", NAME + "no"), "", False),
    (("generate", MODEL, TEXT[:40], "--tokens", 40, *QUIET), "", True),
    (("generate", MODEL, TEXT[:40], "--tokens", 40, "--samples", 2, *QUIET), "", True),
    (("generate", f"{MODEL}.gguf", "--tokens", 40, *QUIET), "", True),
    (("generate", MODEL, HOSTILE + "ß", *QUIET), "", False),
    (("generate", NAME, *QUIET), "", False),
    (
        ("chat", MODEL, "--system", HOSTILE, "--tokens", 40, *QUIET),
        f"cat\n/save {NAME}-chat.jsonl\n/{NAME}\nß\n",
        True,
    ),
    (("fill", "filler", f"cat ___ {TEXT[:40]}", *QUIET), "", True),
    (("fill", "filler", HOSTILE, *QUIET), "", False),
    (("eval", MODEL, FILE, *QUIET), "", True),
    (("score", MODEL, "--pairs", 1, *QUIET), "", False),
    (("score", MODEL, f"{NAME}.jsonl", *QUIET), "", True),
    (("report", MODEL, FILE, "--html", f"{NAME}.html", *QUIET), "", True),
    (("inspect", MODEL, TEXT[:40], *QUIET), "", True),
    (("inspect", MODEL, TEXT[:40], "--site", "block.0.head.0.weights", *QUIET), "", True),
    (("inspect", MODEL, TEXT[:40], "--site", "block.0.head.0.query", *QUIET), "", True),
    (("inspect", MODEL, TEXT[:40], "--json", *QUIET), "", True),
    (("inspect", MODEL, TEXT[:40], "--site", HOSTILE, *QUIET), "", False),
    (("learn", MODEL, TEXT[:40], *QUIET), "", True),
    (
        ("race", FILE, "--kind", "ngram", "--model", MODEL, "--prompt", "cat", "--minutes", 0.01, *QUIET),
        "",
        True,
    ),
    (("words", "vectors.txt", "--near", "the"), "", True),
    (("words", "vectors.txt", "--near", HOSTILE), "", False),
    (("lecture", "001.4"), f"{HOSTILE}\n", True),
    (("lecture", HOSTILE), "", False),
    (("lab", "attention", "--model", MODEL, *QUIET), "", None),
    (("lab", HOSTILE), "", False),
    (("class", "new", f"{NAME}-class", "--seed", "7"), "", True),
    (("class", "grade", f"{NAME}-class"), "", True),
    (("export", MODEL, f"{NAME}.gguf", "--to", "gguf"), "", False),
    (("export", f"{MODEL}.gguf", f"{NAME}-exported", "--to", "huggingface"), "", True),
    (("pull", HOSTILE), "", False),
    (("serve", f"{MODEL}-not"), "", False),
    (("explore", f"{MODEL}-not"), "", False),
    ((HOSTILE,), "", False),
    (("generate", f"--{HOSTILE}", 1), "", False),
]


SLOW = [
    (("report", MODEL, f"{MODEL}.gguf", FILE, "--html", f"{NAME}.html", *QUIET), "", True),
    (("publish", f"{NAME}-site", MODEL, "--text", TEXT[:40], "--no-labs"), "", True),
    (("demo", "--minutes", 0.02, "--no-browser"), "", True),
]


@pytest.mark.parametrize(
    ("arguments", "typed", "succeeds"),
    [
        *(pytest.param(*each, id=f"{i}") for i, each in enumerate(COMMANDS)),
        *(pytest.param(*each, id=each[0][0], marks=pytest.mark.slow) for each in SLOW),
    ],
)
def test_no_control_character_reaches_the_terminal(shown, arguments, typed, succeeds):
    code, text = shown(*arguments, typed=f"{typed}\x04" if typed else "")
    check(text)
    assert "internal error" not in text
    assert succeeds is None or (code == 0) == succeeds, text[-2000:]


def test_every_command_is_walked_through():
    named = {each.name for each in app.registered_commands} | {each.name for each in app.registered_groups}
    assert named <= {arguments[0] for arguments, *_ in (*COMMANDS, *SLOW)}


def test_only_the_console_writes_to_the_terminal():
    """Everything else goes through `out`, `err`, `print_text` or `print_json`, which escape."""
    folder, writing = Path(clearhead.cli.__file__).parent, set()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and (
                (isinstance(node.func, ast.Name) and node.func.id in ("print", "Console"))
                or (
                    isinstance(node.func, ast.Attribute)
                    and node.func.attr in ("write", "writelines", "echo", "secho")
                )
            ):
                writing.add(path.name)
    assert writing == {"console.py", "__init__.py", "app.py"}  # app.py prints the version


def test_styles_are_kept_and_texts_are_escaped():
    file = io.StringIO()
    screen = console.EscapingConsole(file=file, force_terminal=True, color_system="standard", highlight=False)
    screen.print(f"a\tb\n{HOSTILE}", style="bold")
    check(file.getvalue())
    assert "\x1b[1m" in file.getvalue()
    assert "\\x1b]0;owned" in file.getvalue()
    assert "\\u202e" in file.getvalue()


def test_json_on_a_terminal_is_the_same_document(capsys):
    console.print_json({"a": HOSTILE, "ä": "é\ud800"})
    printed = capsys.readouterr().out
    assert printed.isascii() is False
    check(printed)
    assert json.loads(printed) == {"a": HOSTILE, "ä": "é\ud800"}


def test_shells_are_not_offered_names_that_a_terminal_would_obey(place, monkeypatch):
    monkeypatch.chdir(place)
    assert complete_models("") == [name for name in name_models() if name.isprintable()]
    assert any(HOSTILE in name for name in name_models())
