"""Generation options are declared once; Python, the command line and the server agree with them."""

import inspect

import pytest
import typer

from clearhead.api.openai import SamplingFields
from clearhead.cli.app import app
from clearhead.errors import UserError
from clearhead.generate.sampling import OPTIONS, Sampling, check_options
from clearhead.language_model import LanguageModel

UNCHECKED = {
    "logit_bias",
    "regex",
    "json_schema",
    "stop",
    "shift",
    "draft",
}  # not numbers: validated where they are used


def test_python_uses_the_declared_defaults():
    for method in (LanguageModel.stream, LanguageModel.request):
        for name, parameter in inspect.signature(method).parameters.items():
            if name in OPTIONS:
                assert parameter.default == OPTIONS[name].default, name
    assert set(Sampling.names()) < set(OPTIONS) & set(inspect.signature(LanguageModel.stream).parameters)


def test_command_line_uses_the_declared_defaults_and_help():
    command = typer.main.get_command(app).commands["generate"]
    given = {parameter.name: parameter for parameter in command.params}
    assert set(OPTIONS) - set(given) == {"slots", "queue"}
    for name in set(OPTIONS) & set(given):
        assert given[name].help.startswith(OPTIONS[name].help.removesuffix(".")), name
        if name not in ("stop", "length_penalty"):
            assert given[name].default == OPTIONS[name].default, name


def test_server_uses_the_declared_help():
    renamed = {"n": "samples"}
    for name, field in SamplingFields.model_fields.items():
        option = OPTIONS.get(renamed.get(name, name))
        assert name == "response_format" or field.description.startswith(option.help), name


@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - UNCHECKED))
def test_limits_are_enforced_and_named_in_the_error(name):
    option = OPTIONS[name]
    inside = [limit for limit in (option.default, option.minimum, option.maximum) if limit is not None]
    for value in inside:
        check_options(**{name: value})
    outside = [option.above] if option.minimum is None else [option.minimum - 1]
    outside += [] if option.maximum is None else [option.maximum + 1]
    for value in (*outside, float("nan"), float("inf"), "1", True):
        with pytest.raises(UserError, match=f"{name} = .*: expected an? .* {option.limits}"):
            check_options(**{name: value})
    with pytest.raises(UserError) if option.default is not None else pytest.MonkeyPatch.context():
        check_options(**{name: None})
