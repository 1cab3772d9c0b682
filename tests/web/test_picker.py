"""Model picker: local models, a damaged one, and one that is pulled."""

import shutil

import pytest

from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.language_model import LanguageModel, load
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, load_models
from tests.serving import make_pullable, running


@pytest.fixture
def home_server(model_folder, home, tmp_path, monkeypatch):
    """A server with four models on disk, of which one is loaded, one damaged and one recurrent, and one to pull."""
    make_pullable(tmp_path, monkeypatch)
    runs, loader = tmp_path / "runs", LoadOptions("cpu", slots=1)
    for name in ("first", "second", "damaged"):
        shutil.copytree(model_folder, runs / name)
    (runs / "damaged" / "model.safetensors").write_bytes(b"nothing")
    tokenizer = load(model_folder, "cpu").tokenizer
    network = Recurrent(RecurrentConfig("gru", tokenizer.n_vocab, n_context=8, n_block=1, d_model=8))
    LanguageModel(network, tokenizer).save(runs / "recurrent")
    registry = load_models([runs / "first"], loader)
    try:
        with running(registry, library=ModelLibrary([runs, home / "models"], home, loader)) as made:
            yield made
    finally:
        registry.close(cancel=True)


@pytest.fixture
def chooser(visit, home_server):
    made = visit(home_server)
    made.open(text="Once upon a hill")
    return made


def panel(visitor):
    return visitor.page.get_by_role("dialog", name="model")


def chosen(visitor):
    return visitor.page.locator("[data-place=model] b").inner_text()


def focused(visitor):
    return visitor.page.evaluate("document.activeElement.querySelector('b')?.innerText")


def test_model_can_be_switched_by_keyboard_alone(chooser):
    assert chosen(chooser) == "first"
    chooser.page.locator("[data-place=model]").focus()
    chooser.page.keyboard.press("Enter")
    names = panel(chooser).locator(".model b")
    names.nth(2).wait_for()
    assert sorted(names.all_inner_texts()) == ["damaged", "first", "recurrent", "second"]
    chooser.expect(lambda: focused(chooser), "first")  # the current model
    for _ in range(5):  # three local and two to pull: enough to wrap around
        if focused(chooser) == "second":
            break
        chooser.page.keyboard.press("ArrowDown")
    chooser.page.keyboard.press("Enter")
    chooser.expect(lambda: chosen(chooser), "second")
    chooser.settle()
    panel(chooser).wait_for(state="hidden")
    assert "model=second" in chooser.url
    assert chooser.prompt.input_value() == "Once upon a hill"


def test_damaged_model_shows_its_error_in_the_list(chooser):
    chooser.forgive("status 503|503")
    chooser.page.locator("[data-place=model]").click()
    damaged = panel(chooser).locator(".model", has_text="damaged")
    damaged.click()
    damaged.locator(".error").wait_for()
    assert "model.safetensors" in damaged.locator(".error").inner_text()
    assert "failed to load" in damaged.locator(".state").inner_text()
    assert chosen(chooser) == "first"


def test_model_without_heads_is_listed_but_disabled(chooser):
    chooser.page.locator("[data-place=model]").click()
    recurrent = panel(chooser).locator(".model", has_text="recurrent")
    recurrent.wait_for()
    assert "gru: generates text, but has no attention heads to show" in recurrent.inner_text()
    assert recurrent.is_disabled()


def test_pulled_model_can_be_selected(chooser):
    chooser.page.locator("[data-place=model]").click()
    chooser.button("Pull Tiny").click()
    pulled = panel(chooser).locator(".model", has_text="tiny")
    pulled.wait_for(timeout=60_000)
    assert "pulled" in pulled.inner_text()
    pulled.click()
    chooser.expect(lambda: chosen(chooser), "tiny")
    chooser.settle()
    assert "model=tiny" in chooser.url
