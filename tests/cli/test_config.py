"""`clearhead.toml`: defaults of one's own, which what is typed wins over, and what no file may say."""

import json
from pathlib import Path

import pytest
import typer

from clearhead.cli import run
from clearhead.cli.app import app
from clearhead.cli.config import LARGEST, OF_EVERY_LAB, may_be_set

SMALL = """
[train]
steps = 3
blocks = 1
width = 32
heads = 1
context = 32
tokenizer = "char"
dropout = 0.1
"""


def write(text, name="clearhead.toml"):
    Path(name).write_text(text, encoding="utf-8")


def options():
    """Every option of every command: whose it is, and whether it is a lab's."""
    for name, command in typer.main.get_command(app).commands.items():
        for each in getattr(command, "commands", {name: command}).values():
            for option in each.params:
                if option.param_type_name == "option" and option.name != "help":
                    yield name, option, name == "lab"


def test_its_values_are_defaults_and_what_is_typed_wins(clearhead, story_file):
    write(SMALL)
    result = clearhead("train", story_file, "--steps", "2", "--out", "model", "--json")
    summary = json.loads(result.out)
    assert summary["steps_done"] == 2
    assert (summary["config"]["n_block"], summary["config"]["dropout"]) == (1, 0.1)
    assert "clearhead.toml: blocks = 1\n" in result.err
    assert "clearhead.toml: steps" not in result.err


def test_what_is_typed_wins_over_what_cannot_stand_beside_it(clearhead, story_file):
    write(SMALL.replace("steps = 3", "minutes = 5"))
    result = clearhead("train", story_file, "--steps", "2", "--out", "model", "--json")
    assert json.loads(result.out)["steps_done"] == 2


def test_a_run_remembers_what_the_file_said(clearhead, story_file):
    write(SMALL)
    assert clearhead("train", story_file, "--out", "model").code == 0
    command = json.loads(Path("model/run.json").read_text(encoding="utf-8"))["command"]
    said = "--steps 3 --blocks 1 --heads 1 --width 32 --context 32 --tokenizer char --dropout 0.1"
    assert " ".join(command).endswith(said)


def test_a_lab_has_a_table_in_a_table(clearhead):
    write('[lab.attention]\nsequence = "0110"\n')
    assert json.loads(clearhead("lab", "attention", "--json").out)["settings"]["sequence"] == "0110"


def test_a_list(clearhead, model_folder):
    write('[generate]\nstop = [" "]\nseed = 1\ntokens = 40\n')
    text = json.loads(clearhead("generate", model_folder, "The", "--json").out)
    assert text["stop"] == [" "]
    assert " " not in text["texts"][0]


def test_what_it_says_of_drawing_does_not_disturb_beams(clearhead, model_folder):
    write("[generate]\ntemperature = 0.5\ntokens = 4\n")
    assert clearhead("generate", model_folder, "The", "--beams", "2").code == 0


REFUSED = [
    ("[trian]\nminutes = 5", ["[trian] is not a command", "did you mean 'train'?"]),
    ("[train]\nminuts = 5", ["[train] has no option 'minuts'", "did you mean 'minutes'?"]),
    ("[train]\nlearning_rate = 0.1", ["'learning_rate'", "did you mean 'learning-rate'?"]),
    ("minutes = 5", ["minutes is outside any command's table", "[train]"]),
    ('[train]\nminutes = "5"', ['minutes = "5"', "expected a number"]),
    ("[train]\nsteps = 5.0", ["steps = 5.0", "expected an integer"]),
    ("[train]\nsteps = true", ["steps = true", "expected an integer"]),
    ("[train]\ndeterministic = 1", ["deterministic = 1", "true or false"]),
    ("[train]\npreset = 3", ["preset = 3", "a quoted string"]),
    ("[train]\nminutes = 2026-01-01", ["2026-01-01", "expected a number"]),
    ('[generate]\nstop = "a"', ['stop = "a"', "expected a list"]),
    ("[serve]\nport = 99999", ["port = 99999", "0 to 65535"]),
    ("[serve]\ngrace = -1", ["grace = -1", "0 to 3600"]),
    ("[lab]\nboost = 3", ["lab.boost is outside any command's table", "[lab.attention]"]),
    ("[lab.atention]\nboost = 3", ["[lab.atention] is not a command", "did you mean 'attention'?"]),
    ("[lab.attention]\nboots = 3", ["'boots'", "did you mean 'boost'?"]),
    ("[train\nminutes = 5", ["clearhead.toml is not valid TOML", "line 1"]),
    ("[train]\nminutes = 5\nminutes = 6", ["is not valid TOML"]),
    ("a = " + "[" * 5000 + "]" * 5000, ["is not valid TOML"]),
    ("# " + "x" * LARGEST, [f"more than {LARGEST} bytes"]),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=lambda value: str(value)[:30])
def test_what_cannot_be_is_refused(text, words, refused):
    write(text)
    refused("models", words=words)


def test_no_text(refused):
    Path("clearhead.toml").write_bytes(b"\xff\xfe")
    refused("models", words=["clearhead.toml is not valid TOML"])


def test_a_folder_of_that_name(refused):
    Path("clearhead.toml").mkdir()
    refused("models", words=["clearhead.toml is a folder"])


# A folder that came from elsewhere must not open this machine, read or write files, or send anything.
DANGEROUS = [
    ("serve", "host", '"0.0.0.0"'),
    ("serve", "no-token", "true"),
    ("serve", "token", '"known-to-the-attacker"'),
    ("serve", "allow-host", '["attacker.example"]'),
    ("explore", "token", '"known-to-the-attacker"'),
    ("train", "out", '"/somewhere"'),
    ("train", "from", '"attacker/model"'),
    ("train", "wandb", '"project"'),
    ("train", "validation", '["/secret"]'),
    ("generate", "json-schema", '"/secret"'),
    ("inspect", "svg", '"precious.svg"'),
    ("race", "figure", '"precious.svg"'),
    ("race", "model", '["attacker/model"]'),
    ("words", "out", '"precious.bin"'),
    ("lab.attention", "figure", '"precious.svg"'),
    ("lab.blank", "model", '"attacker/model"'),
]


@pytest.mark.parametrize(("command", "key", "value"), DANGEROUS, ids=lambda value: str(value))
def test_what_is_dangerous_is_typed(command, key, value, refused):
    write(f"[{command}]\n{key} = {value}\n")
    refused("models", words=[f"[{command}] {key} cannot be set in a file: type --{key}"])


def test_no_option_that_names_a_file_a_host_or_a_secret_may_be_set():
    """By their names, so that an option that is added is thought of."""
    places = {"out", "file", "figure", "svg", "folder", "save"}
    suspect = {*places, "host", "token", "model", "from", "start", "wandb"}
    found = [(name, option.name) for name, option, of_lab in options() if may_be_set(option, of_lab)]
    assert len(found) > 80
    assert [each for each in found if suspect & set(each[1].split("_"))] == []
    texts = {option.name for _, option, of_lab in options() if not of_lab and may_be_set(option)}
    assert {"minutes", "device", "temperature"} <= texts
    assert not {"json", "csv", "resume", "no_token", "allow_host"} & texts
    assert {option.name for _, option, of_lab in options() if of_lab} > OF_EVERY_LAB


def test_another_file_or_none(clearhead, refused, monkeypatch):
    write("nonsense = 1")
    monkeypatch.setenv("CLEARHEAD_CONFIG", "")
    assert clearhead("models").code == 0
    write("[models]\n", "other.toml")
    monkeypatch.setenv("CLEARHEAD_CONFIG", "other.toml")
    assert clearhead("models").code == 0
    monkeypatch.setenv("CLEARHEAD_CONFIG", "missing.toml")
    refused("models", words=["no such file: missing.toml", "unset CLEARHEAD_CONFIG"])


def test_a_link_that_leads_nowhere(refused):
    Path("clearhead.toml").symlink_to("nowhere")
    refused("models", words=["clearhead.toml is a link to a file that does not exist"])


def test_folders_above_are_not_looked_into(clearhead, monkeypatch):
    write("nonsense = 1")
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    assert clearhead("models").code == 0


@pytest.mark.parametrize("arguments", [[], ["--help"], ["train", "--help"], ["--version"]])
def test_help_is_given_whatever_the_file_says(arguments, clearhead):
    write("nonsense = 1")
    assert clearhead(*arguments).code == 0


def test_help_tells_the_defaults_of_the_file(clearhead):
    write("[chat]\ntemperature = 0.123\n")
    assert "[default: 0.123]" in " ".join(clearhead("chat", "--help").out.split())


def test_only_the_first_of_several_processes_tells(capsys, monkeypatch):
    write('[lab.attention]\nsequence = "0110"\n')
    monkeypatch.setenv("RANK", "1")
    assert run(["lab", "attention"]) == 0
    assert "clearhead.toml" not in capsys.readouterr().err
