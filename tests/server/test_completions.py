import json
import threading

import httpx
import jsonschema
import openai
import pytest

from clearhead.generate import scheduler
from clearhead.generate.sampler import make_grammar
from tests import event_loop

LONG = {"model": "small", "prompt": "a", "max_tokens": 4096, "logit_bias": {"256": -100}, "seed": 1}
SEEDED = {"seed": 7, "temperature": 0.9, "max_tokens": 30}


@pytest.fixture(scope="module")
def ai(server):
    with openai.OpenAI(
        base_url=f"{server.url}/v1",
        api_key=server.credentials.token,
        max_retries=0,
        http_client=httpx.Client(trust_env=False, timeout=60),
    ) as made:
        yield made


def user(text):
    return [{"role": "user", "content": text}]


def test_models_are_listed(ai):
    assert [model.id for model in ai.models.list()] == ["small"]
    assert ai.models.retrieve("small").id == "small"
    with pytest.raises(openai.NotFoundError, match="there is no model 'other'"):
        ai.models.retrieve("other")


def test_a_completion_is_what_the_model_writes(ai, server):
    given = ai.completions.create(model="small", prompt="Once", **SEEDED)
    expected = server.model.generate("Once", 30, seed=7, temperature=0.9)
    assert given.choices[0].text == expected
    assert given.choices[0].finish_reason == ("stop" if expected.finish_reason == "stop" else "length")
    assert given.usage.prompt_tokens == 4
    assert given.usage.completion_tokens == len(expected.ids)
    assert given.usage.total_tokens == 4 + len(expected.ids)
    assert ai.completions.create(model="small", prompt="Once", **SEEDED).choices[0].text == expected


def test_every_rule_of_drawing_is_the_models_own(ai, server):
    shared = {
        "top_p": 0.9,
        "presence_penalty": 0.5,
        "frequency_penalty": 0.3,
        "logit_bias": {"97": 5, "256": -100},
    }
    ours = {"top_k": 40, "min_p": 0.01, "repetition_penalty": 1.2}
    given = ai.completions.create(model="small", prompt="Once", **SEEDED, **shared, extra_body=ours)
    bias = {97: 5, 256: -100}
    expected = server.model.generate(
        "Once", 30, seed=7, temperature=0.9, **{**shared, "logit_bias": bias}, **ours
    )
    assert given.choices[0].text == expected


def test_several_prompts_and_samples_are_numbered(ai, server):
    given = ai.completions.create(model="small", prompt=["ab", "cd"], n=2, **SEEDED)
    expected = [
        text
        for prompt in ("ab", "cd")
        for text in server.model.generate(prompt, 30, samples=2, seed=7, temperature=0.9)
    ]
    assert [choice.index for choice in given.choices] == [0, 1, 2, 3]
    assert [choice.text for choice in given.choices] == expected
    ids = ai.completions.create(model="small", prompt=[[97, 98], [99, 100]], n=2, **SEEDED)
    assert [choice.text for choice in ids.choices] == expected


def test_a_stream_is_the_same_text(ai, server):
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


def test_a_stop_string_ends_the_text(ai, server):
    whole = server.model.generate("Once", 30, seed=7, temperature=0.9)
    stop = whole[5:7]
    given = ai.completions.create(model="small", prompt="Once", stop=stop, **SEEDED).choices[0]
    assert given.text == server.model.generate("Once", 30, seed=7, temperature=0.9, stop=stop)
    assert stop not in given.text
    assert given.finish_reason == "stop"


def test_log_probabilities_are_told(ai, server):
    given = ai.completions.create(model="small", prompt="Once", logprobs=3, **SEEDED).choices[0]
    expected = server.model.generate("Once", 30, seed=7, temperature=0.9, log_probabilities=3)
    told = given.logprobs
    assert told.token_logprobs == pytest.approx(expected.log_probabilities, abs=1e-4)
    assert all(len(each) <= 3 for each in told.top_logprobs)
    assert len(told.tokens) == len(told.text_offset) == len(expected.ids)


def test_chat_is_the_models_own_template(ai, server):
    given = ai.chat.completions.create(
        model="small", messages=user("Hello"), seed=7, temperature=0.9, max_completion_tokens=30
    )
    ids = server.model.chat_ids(user("Hello"))
    expected = server.model.generate(ids, 30, seed=7, temperature=0.9)
    assert given.choices[0].message.content == expected
    assert given.choices[0].message.role == "assistant"
    assert given.usage.prompt_tokens == len(ids)
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]
    again = ai.chat.completions.create(model="small", messages=user(parts), **SEEDED)
    assert again.choices[0].message.content == expected


def test_chat_streams(ai, server):
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
    told = [each for choice in choices if choice.logprobs for each in choice.logprobs.content]
    assert [each.logprob for each in told] == pytest.approx(expected.log_probabilities, abs=1e-4)
    assert all(len(each.top_logprobs) == 2 for each in told)
    assert choices[-1].finish_reason in ("stop", "length")
    assert parts[-1].usage.completion_tokens == len(expected.ids)


def test_a_schema_holds_the_reply(ai):
    schema = {
        "type": "object",
        "properties": {"a": {"enum": [1, 2]}, "b": {"type": "boolean"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    given = ai.chat.completions.create(
        model="small",
        messages=user("Hello"),
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
        temperature=0,
        max_tokens=80,
        logit_bias={"10": -100, "9": -100, "13": -100},
    )
    assert given.choices[0].finish_reason == "stop"
    jsonschema.validate(json.loads(given.choices[0].message.content), schema)
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
def test_mistakes_are_told_as_the_client_knows_them(ai, wrong, error, stream):
    with pytest.raises(error) as caught:
        ai.chat.completions.create(**{"model": "small", "messages": user("a"), "stream": stream, **wrong})
    assert caught.value.body["message"]
    assert caught.value.body["code"]


def test_a_wrong_token_is_told(server):
    with (
        openai.OpenAI(
            base_url=f"{server.url}/v1", api_key="wrong", http_client=httpx.Client(trust_env=False)
        ) as stranger,
        pytest.raises(openai.AuthenticationError),
    ):
        stranger.models.list()


@pytest.mark.parametrize("n", [1, 4])
def test_who_leaves_a_stream_frees_its_slots(server, client, n, submitted):
    with client.stream("POST", "/v1/completions", json={**LONG, "n": n, "stream": True}) as answer:
        lines = answer.iter_lines()
        for _ in range(5):
            next(lines)
        assert server.engine.running == n
    server.until(server.rests)
    assert submitted[0].events[-1].finish == "cancelled"


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_who_leaves_before_the_answer_frees_its_slots(server, path, caplog, submitted):
    body = {**LONG, "messages": user("a")}
    del body["prompt" if "chat" in path else "messages"]
    server.abandon(path, body, once=lambda: server.engine.running)
    server.until(server.rests)
    assert submitted[0].events[-1].finish == "cancelled"
    server.until(lambda: any(f"POST {path} 499" in line for line in server.log))
    assert not [record for record in caplog.records if record.levelname == "ERROR"]  # it is no mistake


def test_who_leaves_while_a_rule_is_made_takes_no_slot(server, monkeypatch, submitted):
    begun, go_on, made = threading.Event(), threading.Event(), threading.Event()

    def make_slowly(*given):
        begun.set()
        assert go_on.wait(60)
        made.set()
        return make_grammar(*given)

    monkeypatch.setattr(scheduler, "make_grammar", make_slowly)
    body = {
        "model": "small",
        "messages": user("a"),
        "max_tokens": 4096,
        "response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "string"}}},
        "logit_bias": {str(ord('"')): -100},  # which it would not end without
    }
    server.log.clear()
    server.abandon("/v1/chat/completions", body, once=begun.is_set)
    go_on.set()
    server.until(lambda: any("POST /v1/chat/completions 499" in line for line in server.log))
    assert made.is_set()
    server.until(server.rests)
    server.until(lambda: all(handle.done for handle in submitted))
    assert {handle.events[-1].finish for handle in submitted} <= {"cancelled"}


def test_many_at_once_get_their_own_texts(server):
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


def test_the_numbers_for_prometheus_grow(client):
    def read():
        lines = client.get("/metrics").text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

    before = read()
    client.post("/v1/completions", json={"model": "small", "prompt": "abc", "max_tokens": 1, "seed": 1})
    after = read()
    assert (
        after['clearhead_tokens_total{kind="read"}'] - before.get('clearhead_tokens_total{kind="read"}', 0)
        == 3
    )
    assert after['clearhead_running{model="small"}'] == 0


def test_the_bytes_of_a_token_are_those_it_adds_to_the_text(client):
    """Of a byte that is a part of a character, too: whoever joins them has the text."""
    body = {
        "model": "small",
        "messages": user("a"),
        "regex": "é€",
        "logprobs": True,
        "top_logprobs": 2,
        "max_tokens": 9,
    }
    choice = client.post("/v1/chat/completions", json=body).json()["choices"][0]
    told = choice["logprobs"]["content"]
    assert choice["message"]["content"] == "é€"
    assert bytes(byte for each in told for byte in each["bytes"] or []) == "é€".encode()
    assert told[0]["bytes"] == [0xC3]
    end = [each for each in told if each["token"] == "<|endoftext|>"]
    assert all(each["bytes"] is None for each in end)


def test_json_can_be_asked_of_a_completion_too(client):
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
        ("/v1/chat/completions", "tools", [{"type": "function"}]),
        ("/v1/chat/completions", "tool_choice", "required"),
        ("/v1/chat/completions", "shift", True),
        ("/api/trace", "foo", 1),
    ],
)
def test_a_field_that_would_change_the_answer_is_not_passed_over(client, path, field, value):
    body = {"model": "small", field: value}
    body |= {"messages": user("a")} if "chat" in path else {"text" if "api" in path else "prompt": "a"}
    answer = client.post(path, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"{field}: this is not offered"
    assert answer.json()["error"]["param"] == field


def test_what_is_for_the_books_of_others_is_left_alone(client):
    body = {
        "model": "small",
        "prompt": "a",
        "max_tokens": 1,
        "user": "me",
        "metadata": {"a": 1},
        "store": False,
    }
    assert client.post("/v1/completions", json=body).status_code == 200
    asked = [*user("a"), {"role": "assistant", "content": None, "refusal": None}, *user("b")]
    body = {"model": "small", "messages": asked, "max_tokens": 1, "tool_choice": "auto"}
    assert client.post("/v1/chat/completions", json=body).status_code == 200


def test_what_is_wrong_is_named(client):
    def said(path, **body):
        answer = client.post(path, json={"model": "small", **body})
        assert answer.status_code == 400
        return answer.json()["error"]["message"]

    assert said("/v1/completions", prompt=["a"] * 17).startswith("prompt: List should have at most 16 items")
    assert said("/v1/chat/completions", messages=user("a"), top_logprobs=2).endswith("only with logprobs")
    deep = b'{"model": "small", "prompt": ' + b"[" * 100_000
    answer = client.post("/v1/completions", content=deep, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert "JSON" in answer.json()["error"]["message"]
