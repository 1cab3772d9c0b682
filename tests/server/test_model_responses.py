"""/v1/responses, with requests from OpenAI's client, which strictly validates and parses the answers and streams."""

import json

import jsonschema
import pydantic
import pytest

from tests.serving import make_model, make_registry, running
from tests.text.tool_templates import WITH_TOOLS

pytestmark = pytest.mark.usefixtures("rendered_here")

NOW = {"type": "function", "name": "now", "description": "The time.", "parameters": {}, "strict": True}
MODES = {
    "type": "object",
    "properties": {"mode": {"enum": ["a"]}},
    "required": ["mode"],
    "additionalProperties": False,
}
SET = {"type": "function", "name": "set", "parameters": MODES, "strict": True}
TEXT = {"model": "small", "input": "Hello", "max_output_tokens": 20, "extra_body": {"seed": 3}}


@pytest.fixture(scope="module")
def server():
    registry = make_registry(
        small=make_model(n_context=1024), tags=make_model(template=WITH_TOOLS["tags"], n_context=1024)
    )
    with running(registry) as made:
        yield made
    registry.close(cancel=True)


def test_a_reply_matches_a_chat(server, strict):
    response = strict.responses.create(**TEXT, instructions="Be brief.", temperature=0.9)
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    expected = server.model.generate(server.model.chat_ids(messages), 20, seed=3, temperature=0.9)
    assert response.output_text == expected
    ended = expected.finish_reason == "stop"
    assert response.status == ("completed" if ended else "incomplete")
    assert ended or response.incomplete_details.reason == "max_output_tokens"
    assert (response.usage.output_tokens, response.instructions) == (len(expected.ids), "Be brief.")
    assert (response.store, response.temperature) == (False, 0.9)


def test_items_are_messages(server, strict):
    """Message items with and without a type, with text and parts, and a reply from an earlier response."""
    earlier = strict.responses.create(**TEXT)
    given = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        *(item.model_dump() for item in earlier.output),
        {"role": "user", "content": "More"},
    ]
    response = strict.responses.create(**TEXT | {"input": given})
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": earlier.output_text},
        {"role": "user", "content": "More"},
    ]
    assert response.usage.input_tokens == len(server.model.chat_ids(messages))


def test_a_stream_has_the_events_of_a_text(strict):
    with strict.responses.stream(**TEXT) as stream:
        events = list(stream)
        final = (
            stream.get_final_response() if events[-1].type == "response.completed" else events[-1].response
        )
    kinds = [event.type for event in events if event.type != "response.output_text.delta"]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        f"response.{final.status}",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == final.output_text == strict.responses.create(**TEXT).output_text
    assert events[2].item.content == []
    assert events[2].item.status == "in_progress"


@pytest.mark.parametrize("model", ["small", "tags"])
def test_a_function_is_called_and_its_result_sent(strict, model):
    asked = {"model": model, "input": "Set it.", "tools": [NOW, SET], "max_output_tokens": 200}
    response = strict.responses.create(**asked, tool_choice={"type": "function", "name": "set"})
    (call,) = response.output
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "set", {"mode": "a"})
    assert (response.status, response.tools[0].name) == ("completed", "now")
    given = [
        {"role": "user", "content": "Set it."},
        call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "done"},
    ]
    after = strict.responses.create(**asked | {"input": given, "max_output_tokens": 1}, tool_choice="auto")
    longer = [*given[:2], {**given[2], "output": [{"type": "input_text", "text": "done!"}]}]
    more = strict.responses.create(**asked | {"input": longer, "max_output_tokens": 1}, tool_choice="auto")
    assert more.usage.input_tokens == after.usage.input_tokens + 1 > response.usage.input_tokens + 1


def test_a_stream_has_the_events_of_a_call(strict):
    asked = {"model": "tags", "input": "Set it.", "tools": [SET], "tool_choice": "required"}
    with strict.responses.stream(**asked) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.type for event in events if not event.type.endswith("delta")] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert events[2].item.arguments == ""
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == final.output[0].arguments == '{"mode": "a"}'
    assert final.output[0].parsed_arguments == {"mode": "a"}


@pytest.mark.parametrize(
    "asked", [{"max_output_tokens": 3, "temperature": 0}, {"tools": [SET], "tool_choice": "required"}]
)
def test_events_conform_to_the_openapi_document(server, asked):
    with server.client() as client:
        schemas = client.get("/openapi.json").json()["components"]
        body = {"model": "tags", "input": "Set it.", "stream": True, **asked}
        lines = client.post("/v1/responses", json=body).text.split("\n\n")[:-1]
    events = [json.loads(line.partition("data: ")[2]) for line in lines]
    assert events[-1]["type"] == f"response.{'completed' if 'tools' in asked else 'incomplete'}"
    for event in events:
        jsonschema.validate(event, {"$ref": "#/components/schemas/ResponseEvent", "components": schemas})


class Answer(pydantic.BaseModel):
    """For the client's own parsing of the reply."""

    number: int = pydantic.Field(ge=0, le=9)


def test_text_follows_a_json_schema(strict):
    response = strict.responses.parse(model="small", input="A number?", text_format=Answer)
    assert response.output_parsed.number in range(10)
    with strict.responses.stream(model="small", input="A number?", text_format=Answer) as stream:
        assert stream.get_final_response().output_parsed.number in range(10)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"previous_response_id": "resp_1"},
            "previous_response_id: not supported, because responses are not stored; send all items as input",
        ),
        ({"input": [{"role": "user"}]}, "input.0.content: Field required in a message"),
        ({"input": [{"type": "item_reference", "id": "1"}]}, "input.0.type: Input should be 'message', "),
        ({"input": []}, "input: expected a non-empty list"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]},
            "input.0.content.0.type: images are not supported: this server reads only text",
        ),
        ({"tools": [{"type": "web_search"}]}, "tools.0.type: Input should be 'function'"),
        ({"background": True}, "background: Input should be False"),
        ({"text": {"format": {"type": "json_schema"}}}, "text.format of type json_schema: expected a schema"),
    ],
)
def test_bad_requests_are_refused_in_one_line(server, body, message):
    with server.client() as client:
        answer = client.post("/v1/responses", json={"model": "small", "input": "a"} | body)
    assert answer.status_code == 400
    error = answer.json()["error"]["message"]
    assert error.startswith(message), error
    assert "\n" not in error


def test_harmless_fields_are_ignored(strict):
    response = strict.responses.create(
        **TEXT,
        store=True,
        reasoning={"effort": "low"},
        truncation="auto",
        include=["reasoning.encrypted_content"],
        metadata={"a": "b"},
        service_tier="auto",
        user="me",
        parallel_tool_calls=True,
        text={"verbosity": "low"},
    )
    assert (response.store, response.metadata) == (False, {"a": "b"})


def test_a_failing_stream_ends_with_an_event(server, strict):
    """A grammar and a bias that exclude each other fail while the text is generated."""
    server.registry.engine("small")._scheduler.wrap_sampler = fail
    try:
        events = list(strict.responses.create(**TEXT, stream=True))
    finally:
        server.registry.engine("small")._scheduler.wrap_sampler = lambda _, __, sample: sample
    assert events[-1].type == "response.failed"
    assert events[-1].response.error.message == "no token is left"


def fail(request, number, sample):
    from clearhead.errors import UserError

    def raise_error(logits):
        raise UserError("no token is left")

    return raise_error
