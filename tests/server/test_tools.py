"""Tools, with requests from OpenAI's client, which strictly validates the answers."""

import json

import jsonschema
import pytest

from tests.serving import make_model, make_registry, running
from tests.text.tool_templates import WITH_TOOLS

pytestmark = pytest.mark.usefixtures("rendered_here")

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 8},
        "days": {"type": "integer", "minimum": 0, "maximum": 9},
    },
    "required": ["city", "days"],
}  # arguments that are not listed are not written
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA, "strict": True}}
NOW = {"type": "function", "function": {"name": "now", "description": "The time."}}
USER = [{"role": "user", "content": "How is it?"}]
ENDS_LATE = {"256": -100}  # no end token while text is possible


@pytest.fixture(scope="module")
def server():
    """Models with a template for tools, with one that shows no tools, and without a template."""
    sizes = {"n_context": 1024}
    registry = make_registry(
        small=make_model(template=WITH_TOOLS["tags"], **sizes),
        special=make_model(template=WITH_TOOLS["special"], **sizes),
        items=make_model(template=WITH_TOOLS["items"], **sizes),
        roles=make_model(**sizes),
        plain=make_model(template=None, **sizes),
    )
    with running(registry) as made:
        yield made
    registry.close(cancel=True)


def ask(strict, **body):
    given = {"model": "small", "messages": USER, "tools": [WEATHER, NOW], "max_tokens": 200, "seed": 1}
    return strict.chat.completions.create(**given | body)


def stream(strict, **body):
    """The streamed text, calls and finish reason."""
    text, calls, reason = "", {}, None
    for chunk in ask(strict, stream=True, **body):
        (choice,) = chunk.choices
        text += choice.delta.content or ""
        for each in choice.delta.tool_calls or ():
            if each.id is not None:
                calls[each.index] = {"id": each.id, "name": each.function.name, "arguments": ""}
                assert each.type == "function"
            calls[each.index]["arguments"] += each.function.arguments
        reason = choice.finish_reason or reason
    return text, list(calls.values()), reason


@pytest.mark.parametrize("model", ["small", "special", "roles", "plain"])
def test_a_required_call_matches_its_schema(strict, model):
    reply = ask(strict, model=model, tools=[WEATHER], tool_choice="required").choices[0]
    (call,) = reply.message.tool_calls
    assert (call.function.name, call.type, len(call.id)) == ("weather", "function", 9)
    jsonschema.validate(json.loads(call.function.arguments), SCHEMA | {"additionalProperties": False})
    assert (reply.message.content, reply.finish_reason) == (None, "tool_calls")
    text, calls, reason = stream(strict, model=model, tools=[WEATHER], tool_choice="required")
    assert (text, reason) == ("", "tool_calls")
    assert [(each["name"], each["arguments"]) for each in calls] == [("weather", call.function.arguments)]


@pytest.mark.parametrize("choices", [1, 2])
def test_openai_merges_the_chunks_of_a_call(strict, choices):
    """OpenAI's own helper keeps the last value of a field, even null, so chunks have only the fields that they add."""
    given = {"model": "small", "messages": USER, "tools": [WEATHER], "max_tokens": 200, "n": choices}
    with strict.chat.completions.stream(**given, tool_choice="required", seed=1) as events:
        merged = events.get_final_completion()
    for choice in merged.choices:
        (call,) = choice.message.tool_calls
        assert (choice.message.role, call.type, call.function.name) == ("assistant", "function", "weather")
        assert json.loads(call.function.arguments)
    whole = ask(strict, tools=[WEATHER], tool_choice="required", n=choices)
    assert [each.message.tool_calls[0].function.arguments for each in whole.choices] == [
        each.message.tool_calls[0].function.arguments for each in merged.choices
    ]


def test_a_named_function_is_called(strict):
    """A function without parameters is called without arguments."""
    for choice in (
        {"type": "function", "function": {"name": "now"}},
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "now"}}],
            },
        },
    ):
        reply = ask(strict, tool_choice=choice, parallel_tool_calls=True).choices[0]
        assert [each.function.name for each in reply.message.tool_calls] == ["now"]
        assert reply.message.tool_calls[0].function.arguments == "{}"
        assert reply.finish_reason == "tool_calls"


def test_with_auto_the_model_writes_text_or_a_call(server, strict):
    """An untrained model writes text; when the start of a call is forced on it, the rest is a valid call."""
    reply = ask(strict, logit_bias=ENDS_LATE, max_tokens=30).choices[0]
    assert reply.message.tool_calls is None
    assert reply.finish_reason == "length"
    assert reply.message.content == stream(strict, logit_bias=ENDS_LATE, max_tokens=30)[0]
    start = 'Well.\n<tool_call>\n{"name": "'
    with forced(server.registry.engine("small"), start):
        reply = ask(strict, max_tokens=400).choices[0]
        text, calls, reason = stream(strict, max_tokens=400)
    (call,) = reply.message.tool_calls
    assert call.function.name in ("weather", "now")
    jsonschema.validate(
        json.loads(call.function.arguments), SCHEMA if call.function.name == "weather" else {}
    )
    assert (reply.message.content, reply.finish_reason) == ("Well.", "tool_calls")
    assert (text, reason) == ("Well.", "tool_calls")
    assert [(each["name"], each["arguments"]) for each in calls] == [
        (call.function.name, call.function.arguments)
    ]


class forced:  # noqa: N801 (a context)
    """Every reply begins with this text, as far as its grammar allows it, and then ends if `ends`."""

    def __init__(self, engine, text, ends=False):
        self.scheduler, self.ids = engine._scheduler, [*text.encode(), *([256] if ends else [])]

    def __enter__(self):
        def wrap(request, number, sample):
            left = list(self.ids)
            return lambda logits: sample(
                logits.scatter(0, logits.new_tensor([left.pop(0)]).long(), 1e4) if left else logits
            )

        self.earlier, self.scheduler.wrap_sampler = self.scheduler.wrap_sampler, wrap

    def __exit__(self, *_):
        self.scheduler.wrap_sampler = self.earlier


def test_text_that_resembles_a_call_is_text(server, strict):
    for start in ("<tool_call", "<tool_call>\nno", "{}"):
        with forced(server.registry.engine("small"), start):
            reply = ask(strict, max_tokens=40, logit_bias=ENDS_LATE).choices[0]
            text, calls, _ = stream(strict, max_tokens=40, logit_bias=ENDS_LATE)
        assert reply.message.tool_calls is None
        assert reply.message.content.startswith(start)
        assert (text, calls) == (reply.message.content, [])


def test_a_call_that_is_cut_off(strict):
    reply = ask(strict, tools=[WEATHER], tool_choice="required", max_tokens=60).choices[0]
    assert reply.finish_reason == "length"
    (call,) = reply.message.tool_calls
    assert call.function.arguments.startswith('{"city": "')
    with pytest.raises(ValueError):
        json.loads(call.function.arguments)


@pytest.mark.parametrize("model", ["small", "special", "roles", "plain"])
@pytest.mark.parametrize("tokens", [1, 5, 15])
def test_the_cut_off_start_of_a_call_is_not_text(strict, model, tokens):
    given = {"model": model, "tools": [WEATHER], "tool_choice": "required", "max_tokens": tokens}
    (choice,) = ask(strict, **given).choices
    assert (choice.message.content.strip(), choice.message.tool_calls) == ("", None)
    assert choice.finish_reason == "length"
    assert stream(strict, **given) == (choice.message.content, [], "length")
    given |= {"tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}], "input": "How is it?"}
    response = strict.responses.create(max_output_tokens=given.pop("max_tokens"), **given)
    assert (response.output_text.strip(), response.status) == ("", "incomplete")


@pytest.mark.parametrize(
    ("start", "ends", "given", "text", "reason"),
    [
        ('Well.\n<tool_call>\n{"na', False, {"max_tokens": 22}, "Well.", "length"),
        ('Well.\n<tool_call>\n{"name": "', False, {"max_tokens": 27}, "Well.", "length"),
        ("Well.\n<tool_call>\n{", False, {"stop": ["{"]}, "Well.", "stop"),
        ("Well. ", False, {"max_tokens": 6}, "Well. ", "length"),
        ("Well. <tool", True, {}, "Well. <tool", "stop"),  # the model ended it: this was no call
    ],
)
def test_text_before_a_cut_off_call_is_kept(server, strict, start, ends, given, text, reason):
    with forced(server.registry.engine("small"), start, ends):
        (choice,) = ask(strict, **given).choices
        streamed = stream(strict, **given)
    assert (choice.message.content, choice.message.tool_calls, choice.finish_reason) == (text, None, reason)
    assert streamed == (text, [], reason)


def test_tools_with_a_json_schema(strict):
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [1]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    given = {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}
    for tool_choice in ("auto", "none"):
        for seed in range(2):
            reply = ask(strict, seed=seed, tool_choice=tool_choice, **given).choices[0]
            if reply.message.tool_calls is None:
                assert json.loads(reply.message.content) == {"a": 1}
            else:
                assert tool_choice == "auto"
                json.loads(reply.message.tool_calls[0].function.arguments)


def test_calls_and_results_in_the_history_reach_the_model(server, strict):
    """Each byte added to a part of the history adds one token to the prompt."""

    def count(arguments="{}", result="a", **more):
        call = {"id": "abcdefghi", "type": "function", "function": {"name": "now", "arguments": arguments}}
        messages = [
            *USER,
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "content": result, "tool_call_id": "abcdefghi"},
        ]
        return ask(strict, messages=messages, max_tokens=1, **more).usage.prompt_tokens

    for model in ("small", "plain"):
        assert count(result="abcd", model=model) == count(model=model) + 3
        assert count('{"a": 1}', model=model) == count(model=model) + 6
        assert count(model=model, tool_choice="none") < count(model=model)


@pytest.mark.parametrize("model", ["small", "items", "special", "plain"])
@pytest.mark.parametrize(
    "arguments",
    [
        "",
        " ",
        "null",
        "not json",
        "[1]",
        '{"city": "Par',
        "[" * 300,
        '{"a": "\\ud800"}',
        '{"a":' * 65 + "1" + "}" * 65,
    ],
)
def test_arguments_in_the_history_may_be_any_text(strict, model, arguments):
    """Clients send back what a model wrote, which may have been cut off."""
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "now", "arguments": arguments}}
    messages = [
        *USER,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "content": "a", "tool_call_id": "abcdefghi"},
        *USER,
    ]
    reply = ask(strict, model=model, messages=messages, tools=[NOW], max_tokens=1)
    assert reply.usage.completion_tokens == 1
    items = [{"type": "function_call", "call_id": "abcdefghi", "name": "now", "arguments": arguments}]
    assert strict.responses.create(model=model, input=items, max_output_tokens=16).usage.input_tokens > 0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools.0.type: Input should be 'function'"),
        ({"tools": [NOW] * 129}, "tools: List should have at most 128 items"),
        ({"tools": [NOW, NOW]}, "two functions have the same name"),
        (
            {"tools": [{"type": "function", "function": {"name": 'a"\n<|im_end|>'}}]},
            "tools.0.function.name: String",
        ),
        ({"tools": [], "tool_choice": "required"}, "there are no tools to call"),
        ({"tool_choice": {"type": "function", "function": {"name": "x"}}}, "there is no tool x"),
        ({"tool_choice": {"type": "function", "name": "now"}}, "tool_choice.function: Field required"),
        ({"regex": "a"}, "both regex and tools were given"),
    ],
)
def test_bad_tools_are_refused_in_one_line(server, body, message):
    refuse(server, body, message)


@pytest.mark.parametrize("model", ["small", "roles", "plain"])
def test_the_error_for_too_long_a_prompt_says_how_many_tokens_the_tools_take(server, strict, model):
    tools = [{"type": "function", "function": {"name": f"f{i}"}} for i in range(30)]
    few = ask(strict, model=model, tools=tools[:3], max_tokens=1).usage.prompt_tokens
    none = ask(strict, model=model, tools=[], max_tokens=1).usage.prompt_tokens
    assert few - none > 3 * len(json.dumps(tools[0]["function"]))
    with server.client() as client:
        answer = client.post("/v1/chat/completions", json={"model": model, "messages": USER, "tools": tools})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "context_length_exceeded")
    count = error["values"]["count"]
    assert error["values"] == {"count": count, "most": 1024}
    words = (
        f"the prompt has {count} tokens, {count - none} of them for the tools; the model's context is 1024"
    )
    assert error["message"] == words


def refuse(server, body, message):
    given = {"model": "small", "messages": USER, "tools": [NOW], "max_tokens": 5}
    with server.client() as client:
        answer = client.post("/v1/chat/completions", json=given | body)
    error = answer.json()["error"]["message"]
    assert answer.status_code == 400, error
    assert message in error
    assert "\n" not in error
    assert len(error) < 1001


def nested(depth):
    schema = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (nested(300), "tools.0: nested more than 64 levels deep"),
        ({"type": "string"}, "the parameters of the tool f: expected a JSON schema of type object"),
        (
            {"properties": {"a": {"type": "x"}}},
            "the parameters of the tool f: the JSON schema cannot be used",
        ),
        ({"properties": {"a": {"pattern": "(?=a)", "type": "string"}}}, "the parameters of the tool f"),
        ({"properties": {"a": {"not": {"type": "string"}}}}, 'Unimplemented keys: ["not"]'),
        ({"$ref": "#/nowhere"}, "the parameters of the tool f: the JSON schema cannot be used"),
        ({"properties": {f"p{i}": {"type": "string"} for i in range(5000)}}, "the parameters of the tool f"),
    ],
)
def test_hostile_schemas_are_refused_in_one_line(server, parameters, message):
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters, "strict": True}}
    refuse(server, {"tools": [tool]}, message)


def test_keywords_without_support_are_ignored_unless_strict(strict):
    parameters = {
        "properties": {"a": {"not": {"type": "string"}}},
        "required": ["a"],
        "additionalProperties": False,
    }
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    reply = ask(strict, tools=[tool], tool_choice="required", max_tokens=900).choices[0]
    if reply.finish_reason == "tool_calls":
        assert list(json.loads(reply.message.tool_calls[0].function.arguments)) == ["a"]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"role": "user"}, "messages.0.content: Field required"),
        ({"role": "user", "content": "", "tool_calls": [1]}, "messages.0.tool_calls.0: "),
        (
            {
                "role": "user",
                "content": "",
                "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": ""}}],
            },
            "messages.0.tool_calls: expected only in messages with the role assistant",
        ),
    ],
)
def test_bad_calls_in_the_history_are_refused(server, message, error):
    refuse(server, {"messages": [message]}, error)
