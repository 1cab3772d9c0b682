"""Invalid options: a one-line error names the option or the value before anything is created."""

import re
import sys

import pytest
import typer

from clearhead.cli import config
from clearhead.cli.app import app
from clearhead.labs.catalog import LABS

TRAIN = [
    (["--steps", "0"], ["--steps 0", "at least 1"]),
    (["--steps", "-3"], ["--steps -3"]),
    (["--steps", "ten"], ["--steps", "integer"]),
    (["--steps"], ["--steps"]),
    (["--minutes", "-1"], ["--minutes -1", "above 0"]),
    (["--minutes", "0"], ["--minutes 0", "above 0"]),
    (["--minutes", "nan"], ["--minutes nan"]),
    (["--minutes", "inf"], ["--minutes inf"]),
    (["--minutes", "1", "--steps", "5"], ["--minutes and --steps", "only one"]),
    (["--preset", "foo"], ["--preset foo: expected one of lecture, gpt2, modern"]),
    (["--tokenizer", "foo"], ["--tokenizer foo: expected one of char, byte, bpe"]),
    (["--width", "33", "--heads", "2"], ["33", "2 heads", "32", "34"]),
    (["--width", "33", "--heads", "2", "--blocks", "1"], ["33", "2 heads", "32", "34"]),
    (["--width", "33", "--heads", "2", "--steps", "5"], ["33", "2 heads", "32", "34"]),
    (["--heads", "2", "--kv-heads", "3"], ["2 heads", "3 key-value heads", "must divide"]),
    (["--width", "9", "--heads", "3"], ["d_head = 3", "even"]),
    (["--vocab", "10"], ["--vocab 10:", "257"]),
    (["--vocab", "99999999"], ["--vocab 99999999:", "257"]),
    (["--vocab", "300", "--tokenizer", "char"], ["--vocab 300:", "only bpe"]),
    (["--dropout", "2"], ["--dropout 2"]),
    (["--dropout", "1"], ["--dropout 1"]),
    (["--dropout", "-0.1", "--steps", "5"], ["--dropout -0.1"]),
    (["--dropout", "nan"], ["--dropout nan"]),
    (["--learning-rate", "nan", "--steps", "5"], ["--learning-rate nan"]),
    (["--learning-rate", "0", "--steps", "5"], ["--learning-rate 0"]),
    (["--optimizer", "sgd", "--steps", "5"], ["--optimizer sgd:", "muon, adamw"]),
    (["--recipe", "slow", "--steps", "5"], ["--recipe slow:", "fast, classic"]),
    (["--recipe", "classic", "--optimizer", "muon"], ["adamw", "omit"]),
    (["--bidirectional", "--vocab", "257"], ["257", "258"]),
    (["--accumulation", "0", "--steps", "5"], ["--accumulation 0"]),
    (
        ["--accumulation", "3", "--batch", "8", "--steps", "5"],
        ["8", "3 equal parts", "--accumulation must divide --batch"],
    ),
    (["--batch", "0"], ["--batch 0"]),
    (["--blocks", "0"], ["--blocks 0"]),
    (["--heads", "-1"], ["--heads -1"]),
    (["--kv-heads", "0"], ["--kv-heads 0"]),
    (["--width", "0"], ["--width 0"]),
    (["--context", "0"], ["--context 0"]),
    (["--validation", "0"], ["--validation 0", "between 0 and 1"]),
    (["--validation", "1.5"], ["--validation 1.5"]),
    (["--validation", "nan"], ["--validation nan"]),
    (["--validation", "0.9999", "--steps", "5"], ["provide more text"]),
    (["--seed", "-1"], ["--seed -1"]),
    (["--seed", "99999999999"], ["--seed 99999999999"]),
    (["--wandb", " "], ["--wandb ' ': expected", "project"]),
    (["--device", "nowhere"], ["--device nowhere:", "cpu"]),
    (["--device", "cuda:99"], ["--device cuda:99:", "cpu"]),
    (
        ["--discard-teachers", "--from-teachers", "stories"],
        ["--discard-teachers is for", "omit --discard-teachers"],
    ),
    (["--nonsense"], ["--nonsense", " --help"]),
]


@pytest.mark.parametrize(("options", "words"), TRAIN, ids=lambda value: " ".join(value))
def test_train_rejects_invalid_options(options, words, refused, story_file):
    refused("train", story_file, "--out", "model", *options, words=words)


@pytest.mark.parametrize("package", ["tensorboard", "wandb"])
def test_reporting_without_its_package_is_rejected(package, refused, story_file, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    options = {"tensorboard": ["--tensorboard"], "wandb": ["--wandb", "stories"]}[package]
    refused("train", story_file, "--out", "model", *options, words=[f"clearhead[{package}]"])


GENERATE = [
    (["--temperature", "-1"], ["--temperature -1"]),
    (["--temperature", "nan"], ["--temperature nan"]),
    (["--temperature", "inf"], ["--temperature inf", "a number from 0 to 100"]),
    (["--temperature", "hot"], ["--temperature", "number"]),
    (["--top-k", "0"], ["--top-k 0", "at least 1"]),
    (["--top-p", "2"], ["--top-p 2"]),
    (["--top-p", "0"], ["--top-p 0"]),
    (["--top-p", "nan"], ["--top-p nan"]),
    (["--min-p", "-1"], ["--min-p -1"]),
    (["--min-p", "nan"], ["--min-p nan"]),
    (["--repetition-penalty", "0"], ["--repetition-penalty 0"]),
    (["--repetition-penalty", "inf"], ["--repetition-penalty inf", "a number from 0.01 to 100"]),
    (["--presence-penalty", "3"], ["--presence-penalty 3", "-2 to 2"]),
    (["--frequency-penalty", "nan"], ["--frequency-penalty nan"]),
    (["--logit-bias", "e"], ["--logit-bias 'e'", "a token and a number"]),
    (["--logit-bias", "e=much"], ["--logit-bias 'e=much'"]),
    (["--logit-bias", "=3"], ["--logit-bias '=3'"]),
    (["--logit-bias", "e=101"], ["--logit-bias of 'e' = 101"]),
    (["--logit-bias", "the=1"], ["'the' is 3 tokens"]),
    (["--logit-bias", "#9999=1"], ["--logit-bias of 9999", "an id from 0 to"]),
    (["--regex", "(ab"], ["the regex cannot be used: unclosed group"]),
    (
        ["--regex", "a", "--json-schema", "schema.json"],
        ["no such file: schema.json; expected a JSON schema\n"],
    ),
    (["--json-schema", "."], ["folder"]),
    (["--seconds", "0"], ["--seconds 0", "above 0"]),
    (["--seconds", "nan"], ["--seconds nan"]),
    (["--seconds", "inf"], ["--seconds inf", "a finite number"]),
    (["--log-probabilities", "3"], ["add --json"]),
    (["--log-probabilities", "21", "--json"], ["--log-probabilities 21", "0 to 20"]),
    (["--beams", "0"], ["--beams 0", "1 to"]),
    (["--beams", "2", "--temperature", "0.8"], ["cannot be combined with --temperature"]),
    (
        ["--beams", "2", "--temperature", "1", "--seed", "1"],
        ["cannot be combined with --temperature or --seed"],
    ),
    (["--beams", "2", "--samples", "2"], ["cannot be combined with --samples"]),
    (["--beams", "2", "--regex", "a"], ["cannot be combined with --regex"]),
    (["--beams", "2", "--stop", "a"], ["cannot be combined with --stop"]),
    (["--beams", "2", "--length-penalty", "nan"], ["--length-penalty nan"]),
    (["--length-penalty", "1"], ["--length-penalty applies to beam search"]),
    (["--stop", ""], ["--stop ['']", "expected a non-empty string"]),
    (["--samples", "0"], ["--samples 0", "1 to 10000"]),
    (["--samples", "0", "--json"], ["--samples 0"]),
    (["--tokens", "0"], ["--tokens 0", "at least 1"]),
    (["--tokens", "-5", "--samples", "2"], ["--tokens -5"]),
    (["--seed", "-1"], ["--seed -1"]),
    (["--device", "nowhere"], ["--device nowhere:", "cpu"]),
    (["--nonsense"], ["--nonsense", " --help"]),
    (["and", "more"], ["more", " --help"]),
]


@pytest.mark.parametrize(("options", "words"), GENERATE, ids=lambda value: " ".join(value))
def test_generate_rejects_invalid_options(options, words, refused, model_folder):
    refused("generate", model_folder, "The", *options, words=words)


def test_shift_with_learned_positions_is_rejected(refused, gpt2_folder):
    words = ["requires rotary positions", "learned", "omit --shift"]
    refused("generate", gpt2_folder, "The", "--shift", words=words)
    refused("generate", gpt2_folder, "The", "--shift", "--json", words=words)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (b"{", ["schema.json is not valid JSON: line 1, column 2"]),
        (b'{\n  "type": "object"\n  "x": 1}', ["line 3, column 3: Expecting ',' delimiter"]),
        (b"[1]", ["contains a JSON list, expected an object"]),
        (b"\xff\xfe", ["schema.json is not UTF-8 text"]),
        (b"[" * 100_000, ["schema.json is not valid JSON", "nested too deeply"]),
        (b'{"maxLength": ' + b"1" * 5000 + b"}", ["schema.json is not valid JSON", "digits"]),
    ],
    ids=["cut off", "no comma", "a list", "bytes", "deep", "a huge number"],
)
def test_invalid_json_schema_file_is_rejected(written, words, refused, model_folder, tmp_path):
    (tmp_path / "schema.json").write_bytes(written)
    said = refused("generate", model_folder, "The", "--json-schema", "schema.json", words=words)
    assert "again" not in said  # no "copy it again": the user wrote this file


@pytest.mark.parametrize("temperature", [1e-6, 1e-30, 1e-45, 1e-300])
def test_tiny_temperature_is_greedy(temperature, clearhead, model_folder):
    given = ("generate", model_folder, "The", "--tokens", 20, "--temperature")
    nearly, likeliest = clearhead(*given, temperature), clearhead(*given, 0)
    assert nearly.code == 0, nearly.err
    assert nearly.out == likeliest.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], ["trian", " --help"]),
        (["--nonsense"], ["--nonsense", " --help"]),
        (["train"], ["TEXT", " --help"]),
        (["eval", "model"], ["TEXT", " --help"]),
        (["generate"], ["MODEL", " --help"]),
        (["eval", "model", "text", "--device"], ["--device"]),
        (["demo", "--minutes", "-1"], ["--minutes -1"]),
        (["demo", "--minutes", "nan"], ["--minutes nan"]),
        (["demo", "--seed", "-1"], ["--seed -1"]),
        (["demo", "--device", "nowhere"], ["--device nowhere:", "cpu"]),
        (["demo", "again"], ["again"]),
        (["models", "nowhere"], ["no such folder: nowhere"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_other_commands_reject_invalid_arguments(arguments, words, refused):
    refused(*arguments, words=words)


ROOT = typer.main.get_command(app)
COMMANDS = {(name,): each for name, each in ROOT.commands.items() if name not in ("lab", "fill")}
COMMANDS |= {("lab", name): each for name, each in ROOT.commands["lab"].commands.items()}
OUT_OF_BOUNDS = {"presence_penalty": "3", "frequency_penalty": "3", "length_penalty": "11"}  # others: -1
OUT_OF_BOUNDS |= {"block": "99", "head": "99"}
ALSO = {"order": ["--kind", "ngram"], "length_penalty": ["--beams", "2"], "log_probabilities": ["--json"]}


def bounded_options():
    """Every option that takes a number within bounds, with a value outside them."""
    for words, command in COMMANDS.items():
        settings = {each.name: each for each in LABS[words[1]].settings} if words[0] == "lab" else {}
        for option in config.options(command):
            setting = settings.get(option.name)
            if config.kind_of(option) not in (int, float) or (setting and setting.least is None):
                continue
            bad = str(setting.least - 1) if setting else OUT_OF_BOUNDS.get(option.name, "-1")
            yield pytest.param(
                words, option.name, config.flag(option), bad, id=" ".join((*words, option.name))
            )


@pytest.mark.parametrize(("words", "name", "flag", "bad"), list(bounded_options()))
def test_errors_name_the_option_as_it_is_typed(words, name, flag, bad, refused, model_folder, story_file):
    texts, models = [story_file], [model_folder]
    arguments = {
        **{(each,): texts for each in ("train", "race", "words")},
        **{(each,): models for each in ("chat", "score", "serve")},
        ("eval",): [*models, *texts],
        **{(each,): [*models, "The"] for each in ("generate", "inspect", "learn")},
    }
    said = refused(*words, *arguments.get(words, []), flag, bad, *ALSO.get(name, []))
    assert re.match(rf"clearhead: {flag} {bad}(\.0)?: ", said)
