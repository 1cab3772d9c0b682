"""`echo`: the server returns the prompt with the log-probabilities that Python computes."""

import json
import threading

import openai
import pytest

from clearhead.generate.scheduler import Scheduler
from tests.serving import make_model, make_registry, running

PROMPTS = ["Once upon a time", "a", "The hen — a duck."]
NONE = {"max_tokens": 0, "echo": True, "logprobs": 2}


def expected(model, text, top=2):
    scored = model.log_probabilities(text, top=top)
    best = [{model.tokenizer.pieces([i])[0]: p for i, p in token.alternatives} for token in scored.tokens[1:]]
    return scored.log_probabilities, best


def same(found, wanted, tolerance=1e-4):
    assert found[0] is None
    assert wanted[0] is None
    assert found[1:] == pytest.approx(wanted[1:], abs=tolerance)


def test_a_prompt_is_returned_with_its_log_probabilities(ai, server):
    response = ai.completions.create(model="small", prompt="The hen — a duck.", **NONE)
    [choice] = response.choices
    log_probabilities, best = expected(server.model, "The hen — a duck.")
    assert choice.text == "The hen — a duck."
    assert choice.finish_reason == "length"
    same(choice.logprobs.token_logprobs, log_probabilities)
    assert choice.logprobs.top_logprobs[0] is None
    for found, wanted in zip(choice.logprobs.top_logprobs[1:], best, strict=True):
        assert found == pytest.approx(wanted, abs=1e-4)
    # Each of the three bytes of the dash is a token; the character is complete after the last.
    assert choice.logprobs.text_offset == [*range(8), 8, 8, 8, *range(9, 17)]
    assert choice.logprobs.tokens[:4] == ["T", "h", "e", " "]
    assert choice.logprobs.tokens[8:11] == ["\\xe2", "\\x80", "\\x94"]
    assert (response.usage.prompt_tokens, response.usage.completion_tokens) == (19, 0)


@pytest.mark.parametrize("as_ids", [False, True])
@pytest.mark.parametrize("max_tokens", [0, 1, 5])
def test_lists_of_prompts_are_scored_and_continued(ai, server, as_ids, max_tokens):
    prompts = [server.model.tokenizer.encode(text) for text in PROMPTS] if as_ids else PROMPTS
    settings = {"max_tokens": max_tokens, "echo": True, "logprobs": 1, "temperature": 0, "n": 2}
    response = ai.completions.create(model="small", prompt=prompts, **settings)
    assert [choice.index for choice in response.choices] == list(range(6))
    for choice in response.choices:
        text = PROMPTS[choice.index // 2]
        n = len(text.encode())
        log_probabilities, _ = expected(server.model, text)
        same(choice.logprobs.token_logprobs[:n], log_probabilities)
        written = server.model.generate(text, max_tokens or 1, temperature=0, log_probabilities=1)
        new = written.log_probabilities if max_tokens else []
        assert choice.text == text + (written if max_tokens else "")
        assert choice.logprobs.token_logprobs[n:] == pytest.approx(new, abs=1e-4)
        assert len(choice.logprobs.tokens) == len(choice.logprobs.text_offset) == n + len(new)
    assert response.usage.completion_tokens == 6 * max_tokens


def test_echo_without_log_probabilities(ai, server):
    settings = {"seed": 3, "temperature": 0.9, "max_tokens": 8, "echo": True}
    choice = ai.completions.create(model="small", prompt="Once", **settings).choices[0]
    written = server.model.generate("Once", 8, seed=3, temperature=0.9)
    assert choice.text == "Once" + written
    assert choice.logprobs is None
    parts = list(ai.completions.create(model="small", prompt="Once", stream=True, **settings))
    assert parts[0].choices[0].text == "Once"
    assert "".join(part.choices[0].text for part in parts) == "Once" + written
    nothing = ai.completions.create(model="small", prompt="Once", max_tokens=0).choices[0]
    assert (nothing.text, nothing.finish_reason) == ("", "length")


def test_a_stream_begins_with_the_scored_prompt(ai, server):
    settings = {"max_tokens": 4, "echo": True, "logprobs": 0, "temperature": 0}
    parts = [
        part.choices[0]
        for part in ai.completions.create(model="small", prompt="Once", stream=True, **settings)
    ]
    whole = ai.completions.create(model="small", prompt="Once", **settings).choices[0]
    assert parts[0].text == "Once"
    same(parts[0].logprobs.token_logprobs, expected(server.model, "Once")[0])
    assert "".join(part.text for part in parts) == whole.text
    assert [i for part in parts for i in part.logprobs.text_offset] == whole.logprobs.text_offset
    assert parts[-1].finish_reason == "length"


def test_scoring_does_not_change_or_delay_streams(server, monkeypatch):
    """While prompts are scored, a running stream gets a token in every step, and its text stays the same."""
    model = server.model
    made = make_registry(small=model, slots=2)
    with running(made) as other, other.client() as client:
        scheduler: Scheduler = other.engine._scheduler
        steps, run_chunk = [], scheduler.scoring.run_chunk
        started = threading.Event()

        def record(most):
            done = run_chunk(most)
            steps.append((len(scheduler.scoring.handles) + len(done), len(scheduler.running), most))
            if scheduler.running:
                started.set()
            return done

        monkeypatch.setattr(scheduler.scoring, "run_chunk", record)
        body = {"model": "small", "prompt": "Once", "max_tokens": 100, "seed": 5, "logit_bias": {"256": -100}}
        texts = []
        stream = threading.Thread(
            target=lambda: texts.append(
                client.post("/v1/completions", json=body).json()["choices"][0]["text"]
            )
        )
        stream.start()
        assert started.wait(60)
        prompts = [[65] * 100] * 16
        answer = client.post("/v1/completions", json={"model": "small", "prompt": prompts, **NONE}).json()
        stream.join(60)
        other.until(other.is_idle)
    made.close(cancel=True)
    assert len(answer["choices"]) == 16
    assert texts == [model.generate("Once", 100, seed=5, temperature=1.0, logit_bias={256: -100})]
    together = [most for scored, generating, most in steps if scored and generating]
    assert set(together) <= {scheduler.decoder.chunk_size}
    assert together


def test_too_many_prompts_are_refused_while_the_queue_is_full(server):
    made = make_registry(small=server.model, slots=1, queue=4)
    with running(made) as other, other.client() as client:
        answer = client.post("/v1/completions", json={"model": "small", "prompt": ["abc"] * 100, **NONE})
        assert answer.status_code == 429
        other.until(other.is_idle)
        assert (
            client.post("/v1/completions", json={"model": "small", "prompt": "abc", **NONE}).status_code
            == 200
        )
    made.close(cancel=True)


def test_a_disconnect_ends_scoring(server, submitted):
    body = {"model": "small", "prompt": [[65] * 128] * 60, **NONE}
    server.abandon("/v1/completions", body, once=lambda: submitted)
    server.until(server.is_idle)
    server.until(lambda: all(handle.done for handle in submitted))


def test_errors_are_one_line(client, registry_of):
    answer = client.post("/v1/completions", json={"model": "small", "prompt": [65] * 129, **NONE})
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    answer = client.post("/v1/completions", json={"model": "small", "prompt": "a", **NONE, "logprobs": 21})
    assert answer.json()["error"]["param"] == "logprobs"
    whole = client.post(
        "/v1/completions", json={"model": "small", "prompt": [65] * 128, **NONE, "max_tokens": 1}
    )
    assert len(json.loads(whole.content)["choices"][0]["logprobs"]["tokens"]) == 129


def test_a_start_token_is_echoed_but_not_shown(registry_of):
    """The start token that the server puts before a text is a token without text."""
    from clearhead.language_model import LanguageModel
    from clearhead.text.tokenizer import Tokenizer

    plain = make_model()
    inner = Tokenizer.train("byte", [])._inner
    tokenizer = Tokenizer(inner, {**plain.tokenizer.config, "add_bos_token": True})
    assert tokenizer.start_ids == [256]
    registry = registry_of(small=LanguageModel(plain.network, tokenizer))
    with running(registry) as other:
        with openai.OpenAI(base_url=f"{other.url}/v1", api_key=other.credentials.token) as client:
            choice = client.completions.create(model="small", prompt="Once", **NONE).choices[0]
        assert choice.text == "Once"
        assert choice.logprobs.tokens == ["<|endoftext|>", *"Once"]
        assert choice.logprobs.text_offset == [0, 0, 1, 2, 3]
        assert choice.logprobs.token_logprobs[1] is not None
