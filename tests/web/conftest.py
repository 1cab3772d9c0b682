"""A real server with a small model of each kind, and a real browser."""

from pathlib import Path

import pytest
import torch

from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.page.assets import has_site
from clearhead.text.tokenizer import Tokenizer
from tests.serving import make_registry, running
from tests.web.visitor import Visitor

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"n_context": 48, "n_block": 2, "n_head": 2, "d_model": 12}
MODELS = {
    "lecture": {},
    "gpt2": {},
    "modern": {},
    "shared": {"n_kv_head": 1, "tied": False},
    "long": {"n_context": 2048, "n_block": 1},
}


@pytest.fixture(scope="session")
def models(story_text):
    """Reproducible models whose values are never zero by chance."""
    pieces = Tokenizer.train("bpe", [story_text], n_vocab=320)
    letters = Tokenizer.train("char", [story_text])

    def make(name, sizes):
        kind = name if name in ("lecture", "gpt2") else "modern"
        tokenizer = letters if name == "shared" else pieces
        torch.manual_seed(0)
        network = Transformer(preset(kind, n_vocab=tokenizer.n_vocab, **{**SIZES, **sizes})).eval()
        for parameter in network.parameters():
            parameter.data.add_(0.2 * torch.randn_like(parameter))
        return LanguageModel(network, tokenizer)

    return {name: make(name, sizes) for name, sizes in MODELS.items()}


@pytest.fixture(scope="session")
def registry(models):
    made = make_registry(slots=1, **models)
    yield made
    made.close(cancel=True)


@pytest.fixture(scope="session")
def server(registry):
    with running(registry) as made:
        yield made


@pytest.fixture
def visit(browser, server):
    """A returning visitor with reduced motion; the test fails if the browser has reported any problem by the end."""
    if not has_site():
        pytest.skip("the page is not built: run `pip install .` with npm installed")
    made = []

    def come(server=server, width=1800, height=1000, walked=True, **settings):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            **{"locale": "en-GB", "reduced_motion": "reduce", **settings},
        )
        if walked:
            context.add_init_script("localStorage.setItem('walked', 'yes')")
        made.append(Visitor(context, server))
        return made[-1]

    yield come
    left = [complaint for visitor in made for complaint in visitor.left()]
    for visitor in made:
        visitor.context.close()
    assert not left


@pytest.fixture
def axe():
    """Serious accessibility violations on the current page."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed: run `npm ci` in web/")

    def find(visitor):
        visitor.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = visitor.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            (each["id"], each["impact"], [node["target"] for node in each["nodes"]][:5])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    return find


@pytest.fixture
def visitor(visit):
    return visit()
