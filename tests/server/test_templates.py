"""Models whose chat templates attack the server; tests/text/test_chat.py tests the templates themselves."""

import threading

import pytest

HOSTILE = {
    "attributes": ("{{ ''.__class__.__mro__[1].__subclasses__() }}", "forbidden"),
    "globals": ("{{ cycler.__init__.__globals__.os.environ }}", "forbidden"),
    "include": ("{% include '/etc/passwd' %}", "no loader"),
    "import": ("{% import 'os' as os %}{{ os.environ }}", "no loader"),
    "loop": ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}", "too long"),
    "memory": ("{% set x = 'a' * 10 ** 9 %}{{ x | length }}", "too much memory"),
    "gigabyte": ("{% for i in range(10 ** 5) %}{{ 'a' * 10 ** 4 }}{% endfor %}", "writes more than"),
    "raises": ("{{ raise_exception('not today') }}", "not today"),
    "fails": ("{{ 1 / 0 }}", "division by zero"),
    "syntax": ("{% for %}", "not valid"),
    "too_long": ("a" * 2**19, "expected at most"),
}
ASKED = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}


@pytest.fixture(scope="module")
def attacked(registry_of_templates, running_server):
    registry = registry_of_templates(
        **{name: template for name, (template, _) in HOSTILE.items()},
        writes_much="{{ 'a' * 10 ** 6 }}",
        hidden="{{ raise_exception.__globals__ }}{{ '' | attr('__class__') }}a",
    )
    with running_server(registry) as made:
        yield made


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.slow
def test_hostile_templates_return_an_error(attacked, name, stream):
    with attacked.client() as client:
        response = client.post("/v1/chat/completions", json={**ASKED, "model": name, "stream": stream})
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_request")
    assert error["message"].startswith("the chat template ")
    assert HOSTILE[name][1] in error["message"]
    assert "\n" not in error["message"]
    assert len(response.content) < 1000
    for secret in ("Traceback", "site-packages", "clearhead/", "root:", "PATH", attacked.credentials.token):
        assert secret not in response.text


def test_environment_is_not_exposed(attacked):
    """Neither the response nor the prompt, which is a single letter, contains it."""
    with attacked.client() as client:
        response = client.post("/v1/chat/completions", json={**ASKED, "model": "hidden"})
    assert response.status_code == 200
    assert response.json()["usage"]["prompt_tokens"] == 1


def test_rendered_prompt_longer_than_the_context_is_rejected(attacked):
    with attacked.client() as client:
        response = client.post("/v1/chat/completions", json={**ASKED, "model": "writes_much"})
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


@pytest.mark.slow
def test_other_models_respond_during_template_attacks(attacked):
    answered = []

    def attack(name):
        with attacked.client() as client:
            answered.append(client.post("/v1/chat/completions", json={**ASKED, "model": name}).status_code)

    attackers = [threading.Thread(target=attack, args=(name,)) for name in ("loop", "memory") * 6]
    for attacker in attackers:
        attacker.start()
    try:
        with attacked.client() as client:
            for path, asked in (
                ("/v1/chat/completions", ASKED),
                ("/v1/completions", {"prompt": "a", "max_tokens": 2}),
                ("/api/trace", {"text": "a"}),
            ):
                response = client.post(path, json={**asked, "model": "small"})
                assert response.status_code == 200, response.text
            assert client.get("/healthz").status_code == 200
            assert len(answered) < len(attackers)  # the attacks are still running
    finally:
        for attacker in attackers:
            attacker.join(60)
    assert answered == [400] * len(attackers)
