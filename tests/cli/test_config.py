"""`clearhead.toml`: the user's defaults, which typed options override, and options it may not set."""

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
    """Every option of every command: the command, the option, and whether it belongs to a lab."""
    for name, command in typer.main.get_command(app).commands.items():
        for each in getattr(command, "commands", {name: command}).values():
            for option in each.params:
                if option.param_type_name == "option" and option.name != "help":
                    yield name, option, name == "lab"


def test_typed_options_override_file_defaults(clearhead, story_file):
    write(SMALL)
    result = clearhead("train", story_file, "--steps", "2", "--out", "model", "--json")
    summary = json.loads(result.out)
    assert summary["steps_done"] == 2
    assert (summary["config"]["n_block"], summary["config"]["dropout"]) == (1, 0.1)
    assert "clearhead.toml: blocks = 1\n" in result.err
    assert "clearhead.toml: steps" not in result.err


def test_typed_option_overrides_a_conflicting_default(clearhead, story_file):
    write(SMALL.replace("steps = 3", "minutes = 5"))
    result = clearhead("train", story_file, "--steps", "2", "--out", "model", "--json")
    assert json.loads(result.out)["steps_done"] == 2


def test_run_records_options_from_the_file(clearhead, story_file):
    write(SMALL)
    assert clearhead("train", story_file, "--out", "model").code == 0
    command = json.loads(Path("model/run.json").read_text(encoding="utf-8"))["command"]
    said = "--steps 3 --blocks 1 --heads 1 --width 32 --context 32 --tokenizer char --dropout 0.1"
    assert " ".join(command).endswith(said)


def test_lab_options_are_set_in_nested_tables(clearhead):
    write('[lab.attention]\nsequence = "0110"\n')
    assert json.loads(clearhead("lab", "attention", "--json").out)["settings"]["sequence"] == "0110"


def test_list_values_are_accepted(clearhead, model_folder):
    write('[generate]\nstop = [" "]\nseed = 1\ntokens = 40\n')
    text = json.loads(clearhead("generate", model_folder, "The", "--json").out)
    assert text["stop"] == [" "]
    assert " " not in text["texts"][0]


def test_sampling_defaults_are_ignored_in_beam_search(clearhead, model_folder):
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
    ("a = " + "[" * 3000 + "]" * 3000, ["is not valid TOML"]),
    ("# " + "x" * LARGEST, [f"more than {LARGEST} bytes"]),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=lambda value: str(value)[:30])
def test_invalid_contents_are_rejected(text, words, refused):
    write(text)
    refused("models", words=words)


def test_file_that_is_not_utf8_is_rejected(refused):
    Path("clearhead.toml").write_bytes(b"\xff\xfe")
    refused("models", words=["clearhead.toml is not valid TOML"])


def test_folder_named_clearhead_toml_is_rejected(refused):
    Path("clearhead.toml").mkdir()
    refused("models", words=["clearhead.toml is a folder"])


# A folder from elsewhere must not expose this machine, read or write files, or send anything.
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
    ("inspect", "figure", '"precious.svg"'),
    ("race", "figure", '"precious.svg"'),
    ("race", "model", '["attacker/model"]'),
    ("words", "out", '"precious.bin"'),
    ("lab.attention", "figure", '"precious.svg"'),
    ("lab.blank", "model", '"attacker/model"'),
]


@pytest.mark.parametrize(("command", "key", "value"), DANGEROUS, ids=lambda value: str(value))
def test_dangerous_options_must_be_typed(command, key, value, refused):
    write(f"[{command}]\n{key} = {value}\n")
    refused("models", words=[f"[{command}] {key} cannot be set in a file: type --{key}"])


def test_options_naming_files_hosts_or_secrets_cannot_be_set():
    """Options are checked by name, so that newly added ones are covered."""
    places = {"out", "file", "figure", "svg", "folder", "save"}
    suspect = {*places, "host", "token", "model", "from", "start", "wandb"}
    found = [(name, option.name) for name, option, of_lab in options() if may_be_set(option, of_lab)]
    assert len(found) > 80
    assert [each for each in found if suspect & set(each[1].split("_"))] == []
    texts = {option.name for _, option, of_lab in options() if not of_lab and may_be_set(option)}
    assert {"minutes", "device", "temperature"} <= texts
    assert not {"json", "csv", "resume", "no_token", "allow_host"} & texts
    assert {option.name for _, option, of_lab in options() if of_lab} > OF_EVERY_LAB


def test_environment_variable_selects_another_file_or_none(clearhead, refused, monkeypatch):
    write("nonsense = 1")
    monkeypatch.setenv("CLEARHEAD_CONFIG", "")
    assert clearhead("models").code == 0
    write("[models]\n", "other.toml")
    monkeypatch.setenv("CLEARHEAD_CONFIG", "other.toml")
    assert clearhead("models").code == 0
    monkeypatch.setenv("CLEARHEAD_CONFIG", "missing.toml")
    refused("models", words=["no such file: missing.toml", "unset CLEARHEAD_CONFIG"])


def test_dangling_symlink_is_rejected(refused):
    Path("clearhead.toml").symlink_to("nowhere")
    refused("models", words=["clearhead.toml is a link to a file that does not exist"])


def test_parent_folders_are_not_searched(clearhead, monkeypatch):
    write("nonsense = 1")
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    assert clearhead("models").code == 0


@pytest.mark.parametrize("arguments", [[], ["--help"], ["train", "--help"], ["--version"]])
def test_help_works_with_an_invalid_file(arguments, clearhead):
    write("nonsense = 1")
    assert clearhead(*arguments).code == 0


def test_help_shows_defaults_from_the_file(clearhead):
    write("[chat]\ntemperature = 0.123\n")
    assert "[default: 0.123]" in " ".join(clearhead("chat", "--help").out.split())


def test_only_rank_zero_reports_file_defaults(capsys, monkeypatch):
    write('[lab.attention]\nsequence = "0110"\n')
    monkeypatch.setenv("RANK", "1")
    assert run(["lab", "attention"]) == 0
    assert "clearhead.toml" not in capsys.readouterr().err


def test_errors_about_values_in_the_file_name_the_file_and_the_key(clearhead, model_folder):
    write("[generate]\ntop-p = 1.5")
    result = clearhead("generate", model_folder, "The")
    assert result.code == 2
    assert result.err.endswith("clearhead.toml: top-p = 1.5: expected a number above 0 and at most 1\n")
