"""Fixtures: a registry with a small chat model, and a real server on a free port."""

import httpx
import openai
import pytest

from tests.serving import TOKEN, make_model, make_registry, running


@pytest.fixture(scope="session")
def registry():
    made = make_registry()
    yield made
    made.close(cancel=True)


@pytest.fixture(scope="session")
def server(registry):
    with running(registry) as made:
        yield made


@pytest.fixture
def start(registry):
    """Start another server with its own limits, token or registry."""
    return lambda limits=None, token=TOKEN, registry=registry: running(registry, limits, token)


@pytest.fixture
def registry_of():
    """Make a registry with a different number of slots or different models."""
    made = []

    def make(slots=8, queue=64, **models):
        made.append(make_registry(slots, queue, **models))
        return made[-1]

    yield make
    for each in made:
        each.close(cancel=True)


@pytest.fixture
def client(server):
    with server.client() as made:
        yield made


@pytest.fixture(scope="module")
def strict(server):
    """OpenAI's client, which checks every response against its own types."""
    with openai.OpenAI(
        base_url=f"{server.url}/v1",
        api_key=server.credentials.token,
        max_retries=0,
        http_client=httpx.Client(trust_env=False, timeout=60),
        _strict_response_validation=True,
    ) as made:
        yield made


@pytest.fixture(scope="session")
def ai(server):
    with openai.OpenAI(
        base_url=f"{server.url}/v1",
        api_key=server.credentials.token,
        max_retries=0,
        http_client=httpx.Client(trust_env=False, timeout=60),
    ) as made:
        yield made


@pytest.fixture
def submitted(server, monkeypatch):
    """The handles of all requests submitted to the engine."""
    handles, submit = [], server.engine.submit

    def record(*arguments):
        handles.append(submit(*arguments))
        return handles[-1]

    monkeypatch.setattr(server.engine, "submit", record)
    return handles


@pytest.fixture(scope="session")
def registry_of_kinds():
    """A registry with one model of each preset."""
    made = make_registry(
        slots=1, **{kind: make_model(kind, n_block=2) for kind in ("lecture", "gpt2", "modern")}
    )
    yield made
    made.close(cancel=True)


@pytest.fixture(scope="session")
def registry_of_templates():
    """Make a registry with one model per chat template, plus one with a valid template."""
    made = []

    def make(**templates):
        models = {name: make_model(template=template) for name, template in templates.items()}
        made.append(make_registry(slots=1, small=make_model(), **models))
        return made[-1]

    yield make
    for each in made:
        each.close(cancel=True)


@pytest.fixture(scope="session")
def running_server():
    return running


@pytest.fixture(scope="session")
def make_small():
    """Make a small model with different sizes."""
    return make_model
