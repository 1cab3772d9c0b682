"""A small model that chats, on a shelf, behind a real server on a free port of this machine."""

import pytest

from tests.serving import TOKEN, make_model, make_shelf, running


@pytest.fixture(scope="session")
def shelf():
    made = make_shelf()
    yield made
    made.close(cancel=True)


@pytest.fixture(scope="session")
def server(shelf):
    with running(shelf) as made:
        yield made


@pytest.fixture
def start(shelf):
    """Another server, with bounds of its own."""
    return lambda bounds=None, token=TOKEN, shelf=shelf: running(shelf, bounds, token)


@pytest.fixture
def shelf_of():
    """A shelf with so many slots, or with other models."""
    made = []

    def make(slots=8, queue=64, **models):
        made.append(make_shelf(slots, queue, **models))
        return made[-1]

    yield make
    for each in made:
        each.close(cancel=True)


@pytest.fixture
def client(server):
    with server.client() as made:
        yield made


@pytest.fixture(scope="session")
def shelf_of_kinds():
    """One model of each preset."""
    made = make_shelf(
        slots=1, **{kind: make_model(kind, n_block=2) for kind in ("lecture", "gpt2", "modern")}
    )
    yield made
    made.close(cancel=True)


@pytest.fixture(scope="session")
def shelf_of_templates():
    """A model with each of these chat templates, beside one with a good one."""
    made = []

    def make(**templates):
        models = {name: make_model(template=template) for name, template in templates.items()}
        made.append(make_shelf(slots=1, small=make_model(), **models))
        return made[-1]

    yield make
    for each in made:
        each.close(cancel=True)


@pytest.fixture(scope="session")
def running_server():
    return running


@pytest.fixture(scope="session")
def make_small():
    """Another small model, of other sizes."""
    return make_model
