"""What OpenAI's clients send, and what they expect: embeddings, chats without a template, fields of other models."""

import openai
import pytest
import torch

from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.language_model import LanguageModel
from clearhead.server.model_registry import ModelRegistry
from tests.serving import make_model, running

TEXTS = ["Once upon a time", "a", "The hen — a duck."]


def final_mean(model, text):
    final = model.network.hidden_states(torch.tensor([model.tokenizer.encode(text)]))[0].detach()
    return final.mean(0) / final.mean(0).norm()


@pytest.mark.parametrize("encoding", [{}, {"encoding_format": "float"}])
def test_embeddings_are_the_mean_of_final(ai, server, encoding):
    """Without an encoding, the client asks for base64 and decodes it."""
    response = ai.embeddings.create(model="small", input=TEXTS, **encoding)
    assert [each.index for each in response.data] == [0, 1, 2]
    for text, each in zip(TEXTS, response.data, strict=True):
        assert each.embedding == pytest.approx(final_mean(server.model, text).tolist(), abs=1e-5)
    assert response.usage.prompt_tokens == sum(len(text.encode()) for text in TEXTS)
    ids = [server.model.tokenizer.encode(text) for text in TEXTS]
    again = ai.embeddings.create(model="small", input=ids, **encoding)
    assert [each.embedding for each in again.data] == [each.embedding for each in response.data]


def test_embeddings_of_the_last_token(ai, server):
    response = ai.embeddings.create(model="small", input="The hen", extra_body={"pooling": "last"})
    final = server.model.inspect("The hen").read("final")[-1]
    assert response.data[0].embedding == pytest.approx((final / final.norm()).tolist(), abs=1e-5)


def test_embeddings_of_other_kinds(registry_of):
    tokenizer = make_model().tokenizer
    torch.manual_seed(0)
    gru = Recurrent(RecurrentConfig("gru", tokenizer.n_vocab, n_context=8, n_block=1, d_model=16))
    registry = registry_of(small=make_model(), gru=LanguageModel(gru, tokenizer))
    with running(registry) as other, other.client() as client:
        answer = client.post("/v1/embeddings", json={"model": "gru", "input": "a" * 20}).json()
        assert len(answer["data"][0]["embedding"]) == 16
        wrong = client.post("/v1/embeddings", json={"model": "small", "input": "a", "dimensions": 3}).json()
        assert wrong["error"]["message"] == "dimensions: not supported unless equal to the model's width, 16"
        long = client.post("/v1/embeddings", json={"model": "small", "input": "a" * 200})
        assert (long.status_code, long.json()["error"]["message"][:22]) == (400, "200 tokens exceed the ")


@pytest.fixture(scope="module")
def plain_registry():
    """A model without a chat template, served with and without plain chats."""
    made = make_model()
    tokenizer = type(made.tokenizer)(made.tokenizer._inner, {"eos_token": "<|endoftext|>"})
    model = LanguageModel(made.network, tokenizer)
    from tests.serving import make_registry

    registry = make_registry(small=model)
    yield registry
    registry.close(cancel=True)


def test_a_model_without_a_template_continues_the_conversation_as_text(plain_registry):
    messages = [
        {"role": "developer", "content": "A story."},
        {"role": "user", "content": "The hen"},
        {"role": "assistant", "content": " saw a duck."},
        {"role": "user", "content": "Once"},
    ]
    with running(plain_registry) as other:
        with openai.OpenAI(base_url=f"{other.url}/v1", api_key=other.credentials.token) as client:
            reply = client.chat.completions.create(
                model="small", messages=messages, max_tokens=9, temperature=0
            )
        expected = other.model.generate("A story.\nThe hen saw a duck.\nOnce", 9, temperature=0)
        assert reply.choices[0].message.content == expected


def test_plain_chats_can_be_switched_off(plain_registry):
    registry = ModelRegistry(list(plain_registry), plain_chat=False)
    with running(registry) as other, other.client() as client:
        body = {"model": "small", "messages": [{"role": "user", "content": "Once"}]}
        answer = client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 400
        assert "this model has no chat template" in answer.json()["error"]["message"]


def test_the_developer_role_is_the_system_role(ai):
    """The test's template writes the role of each message."""
    counts = [
        ai.chat.completions.create(
            model="small",
            messages=[{"role": role, "content": "Be brief."}, {"role": "user", "content": "Hello"}],
            max_tokens=5,
            temperature=0,
        )
        for role in ("developer", "system")
    ]
    assert counts[0].usage.prompt_tokens == counts[1].usage.prompt_tokens
    assert counts[0].choices[0].message == counts[1].choices[0].message


def test_fields_of_other_models_are_ignored(ai):
    reply = ai.chat.completions.create(
        model="small",
        messages=[{"role": "user", "content": "Hello"}],
        max_tokens=2,
        reasoning_effort="low",
        verbosity="low",
        modalities=["text"],
        prediction={"type": "content", "content": "Hello"},
        store=True,
    )
    assert reply.usage.completion_tokens <= 2


def test_max_tokens_is_reduced_to_fit_the_context(ai, server, submitted):
    for tokens in (10**6, server.model.config.n_context):
        reply = ai.completions.create(
            model="small",
            prompt="a",
            max_tokens=tokens,
            logit_bias={"256": -100},
        )
        assert submitted[-1].request.tokens == server.model.config.n_context - 1
        assert reply.usage.completion_tokens == server.model.config.n_context - 1
        assert reply.choices[0].finish_reason == "length"


def test_a_longer_context_allows_more_tokens(registry_of):
    with running(registry_of(small=make_model(n_context=6000))) as other, other.client() as client:
        requests, submit = [], other.engine.submit
        other.engine.submit = lambda request, *rest: (requests.append(request), submit(request, *rest))[1]
        body = {"model": "small", "prompt": "abc", "max_tokens": 10**6, "seconds": 0.05}
        assert client.post("/v1/completions", json=body).json()["choices"][0]["finish_reason"] in (
            "length",
            "stop",
        )
        assert requests[0].tokens == 6000 - 3


def test_top_p_of_zero_is_greedy(ai, server):
    reply = ai.completions.create(model="small", prompt="Once", max_tokens=9, top_p=0)
    assert reply.choices[0].text == server.model.generate("Once", 9, temperature=0)


def test_the_error_for_an_unknown_route_lists_the_routes(ai, client):
    answer = client.get("/v1/complete").json()["error"]
    assert answer["message"].startswith("no route GET /v1/complete: expected one of /v1/models, ")
    assert "/v1/embeddings" in answer["message"]
    assert "/openapi.json" in answer["message"]
    with pytest.raises(openai.NotFoundError, match="no route POST /v1/images/generations"):
        ai.images.generate(prompt="a hen")
