import json
import threading

import httpx
import jsonschema
import openai
import pytest

from clearhead.generate import scheduler
from clearhead.generate.sampler import make_grammar
from clearhead.server import generation
from tests import event_loop

LONG = {"model": "small", "prompt": "a", "max_tokens": 4096, "logit_bias": {"256": -100}, "seed": 1}
SEEDED = {"seed": 7, "temperature": 0.9, "max_tokens": 30}


def user(text):
    return [{"role": "user", "content": text}]


def test_list_models(ai):
    assert [model.id for model in ai.models.list()] == ["small"]
    assert ai.models.retrieve("small").id == "small"
    with pytest.raises(openai.NotFoundError, match="model 'other' does not exist"):
        ai.models.retrieve("other")


def test_completion_matches_generate(ai, server):
    response = ai.completions.create(model="small", prompt="Once", **SEEDED)
    expected = server.model.generate("Once", 30, seed=7, temperature=0.9)
    assert response.choices[0].text == expected
    assert response.choices[0].finish_reason == ("stop" if expected.finish_reason == "stop" else "length")
    assert response.usage.prompt_tokens == 4
    assert response.usage.completion_tokens == len(expected.ids)
    assert response.usage.total_tokens == 4 + len(expected.ids)
    assert ai.completions.create(model="small", prompt="Once", **SEEDED).choices[0].text == expected


def test_sampling_options_match_generate(ai, server):
    shared = {
        "top_p": 0.9,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.3,
        "logit_bias": {"97": 5, "256": -100},
    }
    ours = {"top_k": 40, "min_p": 0.01, "repetition_penalty": 1.2}
    response = ai.completions.create(model="small", prompt="Once", **SEEDED, **shared, extra_body=ours)
    bias = {97: 5, 256: -100}
    expected = server.model.generate(
        "Once", 30, seed=7, temperature=0.9, **{**shared, "logit_bias": bias}, **ours
    )
    assert response.choices[0].text == expected


def test_multiple_prompts_and_samples_match_generate(ai, server):
    response = ai.completions.create(model="small", prompt=["ab", "cd"], n=2, **SEEDED)
    expected = [
        text
        for prompt in ("ab", "cd")
        for text in server.model.generate(prompt, 30, samples=2, seed=7, temperature=0.9)
    ]
    assert [choice.index for choice in response.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in response.choices] == expected
    ids = ai.completions.create(model="small", prompt=[[97, 98], [99, 100]], n=2, **SEEDED)
    assert [choice.text for choice in ids.choices] == expected


def test_stream_matches_generate(ai, server):
    parts = list(
        ai.completions.create(
            model="small", prompt="Once", n=2, stream=True, stream_options={"include_usage": True}, **SEEDED
        )
    )
    expected = server.model.generate("Once", 30, samples=2, seed=7, temperature=0.9)
    for i in range(2):
        mine = [choice for part in parts for choice in part.choices if choice.index == i]
        assert "".join(choice.text for choice in mine) == expected[i]
        assert [choice.finish_reason is not None for choice in mine] == [False] * (len(mine) - 1) + [True]
    assert parts[-1].choices == []
    assert parts[-1].usage.completion_tokens == sum(len(text.ids) for text in expected)
    assert all(part.usage is None for part in parts[:-1])


def test_stop_string_ends_the_completion(ai, server):
    whole = server.model.generate("Once", 30, seed=7, temperature=0.9)
    stop = whole[5:7]
    response = ai.completions.create(model="small", prompt="Once", stop=stop, **SEEDED).choices[0]
    assert response.text == server.model.generate("Once", 30, seed=7, temperature=0.9, stop=stop)
    assert stop not in response.text
    assert response.finish_reason == "stop"


def test_log_probabilities_match_generate(ai, server):
    response = ai.completions.create(model="small", prompt="Once", logprobs=3, **SEEDED).choices[0]
    expected = server.model.generate("Once", 30, seed=7, temperature=0.9, log_probabilities=3)
    logprobs = response.logprobs
    assert logprobs.token_logprobs == pytest.approx(expected.log_probabilities, abs=1e-4)
    assert all(len(each) <= 3 for each in logprobs.top_logprobs)
    assert len(logprobs.tokens) == len(logprobs.text_offset) == len(expected.ids)


def test_chat_uses_the_chat_template(ai, server):
    response = ai.chat.completions.create(
        model="small", messages=user("Hello"), seed=7, temperature=0.9, max_completion_tokens=30
    )
    ids = server.model.chat_ids(user("Hello"))
    expected = server.model.generate(ids, 30, seed=7, temperature=0.9)
    assert response.choices[0].message.content == expected
    assert response.choices[0].message.role == "assistant"
    assert response.usage.prompt_tokens == len(ids)
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    again = ai.chat.completions.create(model="small", messages=user(parts), **SEEDED)
    assert again.choices[0].message.content == expected


def test_chat_stream_matches_generate(ai, server):
    parts = list(
        ai.chat.completions.create(
            model="small",
            messages=user("Hello"),
            stream=True,
            stream_options={"include_usage": True},
            logprobs=True,
            top_logprobs=2,
            **SEEDED,
        )
    )
    expected = server.model.generate(
        server.model.chat_ids(user("Hello")), 30, seed=7, temperature=0.9, log_probabilities=2
    )
    assert parts[0].choices[0].delta.role == "assistant"
    choices = [part.choices[0] for part in parts[:-1]]
    assert "".join(choice.delta.content or "" for choice in choices) == expected
    logprobs = [each for choice in choices if choice.logprobs for each in choice.logprobs.content]
    assert [each.logprob for each in logprobs] == pytest.approx(expected.log_probabilities, abs=1e-4)
    assert all(len(each.top_logprobs) == 2 for each in logprobs)
    assert choices[-1].finish_reason in ("stop", "length")
    assert parts[-1].usage.completion_tokens == len(expected.ids)


def test_output_follows_a_json_schema_or_regex(ai):
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    response = ai.chat.completions.create(
        model="small",
        messages=user("Hello"),
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        temperature=0,
        max_tokens=80,
        logit_bias={"10": -100, "9": -100, "13": -100},
    )
    assert response.choices[0].finish_reason == "stop"
    jsonschema.validate(json.loads(response.choices[0].message.content), schema)
    words = ai.completions.create(model="small", prompt="a", extra_body={"regex": "(yes|no)"}, **SEEDED)
    assert words.choices[0].text in ("yes", "no")


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"model": "other"}, openai.NotFoundError),
        ({"model": "broken"}, openai.InternalServerError),
        ({"temperature": -1}, openai.BadRequestError),
        ({"messages": []}, openai.BadRequestError),
        ({"messages": user("a" * 500)}, openai.BadRequestError),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:1"}}],
                    }
                ]
            },
            openai.BadRequestError,
        ),
        ({"tools": [{"type": "function"}]}, openai.BadRequestError),
        ({"response_format": {"type": "json_schema"}}, openai.BadRequestError),
        ({"response_format": {"type": "json_object"}, "extra_body": {"regex": "a"}}, openai.BadRequestError),
        ({"response_format": {"type": "xml"}}, openai.BadRequestError),
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [False, True])
def test_errors_map_to_openai_exceptions(ai, wrong, error, stream):
    with pytest.raises(error) as caught:
        ai.chat.completions.create(**{"model": "small", "messages": user("a"), "stream": stream, **wrong})
    assert caught.value.body["message"]
    assert caught.value.body["code"]


def test_wrong_token_raises_an_authentication_error(server):
    with (
        openai.OpenAI(
            base_url=f"{server.url}/v1",
            api_key="wrong",
            http_client=httpx.Client(trust_env=False, timeout=60),
        ) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()


@pytest.fixture
def unlimited(monkeypatch):
    """Let texts exceed the context, so that a request runs until it is canceled."""
    monkeypatch.setattr(generation, "_limit_tokens", lambda tokens, left: tokens)


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("n", [1, 4])
def test_disconnect_during_a_stream_frees_slots(server, client, n, submitted):
    with client.stream("POST", "/v1/completions", json={**LONG, "n": n, "stream": True}) as response:
        lines = response.iter_lines()
        for _ in range(5):
            next(lines)
        assert server.engine.running == n
    server.until(server.is_idle)
    assert submitted[0].events[-1].finish_reason == "cancelled"


@pytest.mark.usefixtures("unlimited")
@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_disconnect_before_the_response_frees_slots(server, path, caplog, submitted):
    body = {**LONG, "messages": user("a")}
    del body["prompt" if "chat" in path else "messages"]
    server.abandon(path, body, once=lambda: server.engine.running)
    server.until(server.is_idle)
    assert submitted[0].events[-1].finish_reason == "cancelled"
    server.until(lambda: any(f"POST {path} 499" in line for line in server.log))
    assert not [
        record for record in caplog.records if record.levelname == "ERROR"
    ]  # a disconnect is not an error


LONG_STRING = {"type": "string", "minLength": 4000}  # keeps generation from ending on its own


@pytest.mark.usefixtures("unlimited")
def test_disconnect_during_grammar_compilation_leaves_no_slot_occupied(server, monkeypatch, submitted):
    started, proceed, made = threading.Event(), threading.Event(), threading.Event()

    def make_slowly(*arguments):
        started.set()
        assert proceed.wait(60)
        made.set()
        return make_grammar(*arguments)

    monkeypatch.setattr(scheduler, "make_grammar", make_slowly)
    body = {
        "model": "small",
        "messages": user("a"),
        "max_tokens": 4096,
        "response_format": {"type": "json_schema", "json_schema": {"schema": LONG_STRING}},
    }
    server.log.clear()
    server.abandon("/v1/chat/completions", body, once=started.is_set)
    proceed.set()
    server.until(lambda: any("POST /v1/chat/completions 499" in line for line in server.log))
    assert made.is_set()
    server.until(server.is_idle)
    server.until(lambda: all(handle.done for handle in submitted))
    assert {handle.events[-1].finish_reason for handle in submitted} <= {"cancelled"}


def test_concurrent_requests_match_generate(server):
    import asyncio

    async def ask(client, i):
        body = {"model": "small", "prompt": f"{i}", "seed": i, "max_tokens": 20, "temperature": 0.9}
        return (await client.post("/v1/completions", json=body)).json()["choices"][0]["text"]

    async def ask_all():
        headers = {"Authorization": f"Bearer {server.credentials.token}"}
        async with httpx.AsyncClient(
            base_url=server.url, headers=headers, timeout=60, trust_env=False
        ) as many:
            return await asyncio.gather(*(ask(many, i) for i in range(24)))

    expected = [server.model.generate(f"{i}", 20, seed=i, temperature=0.9) for i in range(24)]
    assert event_loop.run(ask_all()) == expected


def test_prometheus_metrics_count_tokens(client):
    def read():
        lines = client.get("/metrics").text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

    before = read()
    client.post("/v1/completions", json={"model": "small", "prompt": "abc", "max_tokens": 1, "seed": 1})
    after = read()
    assert (
        after['clearhead_tokens_total{kind="prompt"}']
        - before.get('clearhead_tokens_total{kind="prompt"}', 0)
        == 3
    )
    assert after['clearhead_running{model="small"}'] == 0


def test_token_bytes_join_to_the_text(client):
    """The bytes of all tokens concatenate to the text, even where a token is part of a character."""
    body = {
        "model": "small",
        "messages": user("a"),
        "regex": "é€",
        "logprobs": True,
        "top_logprobs": 2,
        "max_tokens": 9,
    }
    choice = client.post("/v1/chat/completions", json=body).json()["choices"][0]
    tokens = choice["logprobs"]["content"]
    assert choice["message"]["content"] == "é€"
    assert bytes(byte for each in tokens for byte in each["bytes"] or []) == "é€".encode()
    assert tokens[0]["bytes"] == [0xC3]
    end = [each for each in tokens if each["token"] == "<|endoftext|>"]
    assert all(each["bytes"] is None for each in end)


def test_completion_follows_a_json_schema(client):
    body = {
        "model": "small",
        "prompt": "a",
        "max_tokens": 60,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": {"type": "integer", "minimum": 0, "maximum": 9}},
        },
    }
    assert client.post("/v1/completions", json=body).json()["choices"][0]["text"] in list("0123456789")


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        ("/v1/completions", "beams", 2),
        ("/v1/completions", "json_schema", {"type": "integer"}),
        ("/v1/completions", "suffix", "and so on"),
        ("/v1/chat/completions", "functions", [{"name": "f"}]),
        ("/v1/chat/completions", "shift", True),
        ("/api/trace", "foo", 1),
    ],
)
def test_unsupported_fields_are_rejected(client, path, field, value):
    body = {"model": "small", field: value}
    body |= {"messages": user("a")} if "chat" in path else {"text" if "api" in path else "prompt": "a"}
    response = client.post(path, json=body)
    assert response.status_code == 400
    assert response.json()["error"]["message"] == f"{field}: not supported"
    assert response.json()["error"]["param"] == field


def test_bookkeeping_fields_are_ignored(client):
    body = {
        "model": "small",
        "prompt": "a",
        "max_tokens": 1,
        "user": "me",
        "metadata": {"a": 1},
        "store": False,
    }
    assert client.post("/v1/completions", json=body).status_code == 200
    messages = [*user("a"), {"role": "assistant", "content": None, "refusal": None}, *user("b")]
    body = {"model": "small", "messages": messages, "max_tokens": 1, "tool_choice": "auto"}
    assert client.post("/v1/chat/completions", json=body).status_code == 200


def test_error_messages_for_invalid_requests(client):
    def post_invalid(path, **body):
        response = client.post(path, json={"model": "small", **body})
        assert response.status_code == 400
        return response.json()["error"]["message"]

    assert post_invalid("/v1/completions", prompt=["a"] * 129).startswith(
        "prompt: List should have at most 128 items"
    )
    assert post_invalid("/v1/completions", prompt=["a"] * 33, n=4) == (
        "33 prompts times n = 4: expected at most 128 samples in all"
    )
    assert post_invalid("/v1/chat/completions", messages=user("a"), top_logprobs=2).endswith(
        "requires logprobs"
    )
    deep = b'{"model": "small", "prompt": ' + b"[" * 100_000
    response = client.post("/v1/completions", content=deep, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert "JSON" in response.json()["error"]["message"]
