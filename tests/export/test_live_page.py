"""Live pages in a real browser: every number is computed there, and equals Python's."""

import base64
import json
import os
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.errors import UserError
from clearhead.export import live_page
from clearhead.export.live_page import publish_live, save_live_html
from clearhead.export.published_folder import publish
from clearhead.export.site import check_folder
from clearhead.language_model import LanguageModel
from clearhead.page.assets import has_bundles
from tests.export.static_host import PATH, Guest, receiving, serving
from tests.web.test_numbers import check, numbers_of
from tests.web.visitor import percent, shows
from tools.live_page import ASK

KINDS = ["lecture", "gpt2", "modern", "shared"]
TEXTS = [
    "The duck was too tired",
    "A",
    " ",
    "Ella's café, naïve: 東京, привет!",
    "👩‍👩‍👧 and 🦆",
    "0 1 22 333\n\n\tEnd",
    "x" * 20,
    "The",
    "<b>no</b> \u202e &amp;",
    "Tom was happy, and Anna was",
]
# Asks the engine, with the response's body in base64, which can be passed to Python.
ASK_ENCODED = """async ([path, body]) => {
  const answer = await ask(path, body);
  let text = "";
  for (const byte of new Uint8Array(answer.body)) text += String.fromCharCode(byte);
  return { ...answer, body: btoa(text) };
}"""

# Whether the service worker has stored a model.
STORED = """async () => {
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    const index = (await cache.keys()).find(({ url }) => url.endsWith("/weights.json"));
    if (index === undefined) continue;
    const { pieces } = await (await cache.match(index)).json();
    const stored = await Promise.all(pieces.map(({ file }) => cache.match(new URL(file, index.url))));
    return stored.every((piece) => piece !== undefined);
  }
  return false;
}"""

pytestmark = pytest.mark.skipif(
    not has_bundles(), reason="the page is not built: run `pip install .` with npm installed"
)


class LiveGuest(Guest):
    def ask(self, path, **body):
        answer = self.page.evaluate(ASK_ENCODED, [path, body])
        content = base64.b64decode(answer["body"])
        shape = dict(answer["headers"]).get("x-shape")
        if shape is None:
            return answer["status"], json.loads(content)
        numbers, arrays = np.frombuffer(content, "<f4"), []
        for each in shape.split(";"):
            sizes = [int(size) for size in each.split(",")]
            arrays.append(numbers[: np.prod(sizes)].reshape(sizes))
            numbers = numbers[np.prod(sizes) :]
        return answer["status"], arrays


@pytest.fixture(scope="module")
def named(models):
    return {name: LanguageModel(models[name].network, models[name].tokenizer, name=name) for name in KINDS}


@pytest.fixture(scope="module")
def host(named, tmp_path_factory):
    """A host with a live page of several models."""
    root = tmp_path_factory.mktemp("host")
    publish_live(list(named.values()), root / PATH.strip("/"), labs=False)
    with serving(root) as host:
        yield host


@pytest.fixture
def come(browser, host):
    """Open pages, then check that the browser logged no errors."""
    with receiving(browser) as receive:

        def open_page(query=""):
            guest = receive(LiveGuest, host, 1366, 768, ASK, service_workers="block")
            guest.forgive("Service Worker registration blocked")
            guest.open(query)
            return guest

        yield open_page


def close(one, other):
    """Whether two matrices are equal in each row, relative to its largest number, or to 0.1 if its terms cancel."""
    one, other = (np.atleast_2d(each.T).T.astype(np.float64) for each in (one, other))
    masked = np.isneginf(other)
    if (np.isneginf(one) != masked).any():
        return False
    one, other = np.where(masked, 0, one), np.where(masked, 0, other)
    return (np.abs(one - other).max(-1) <= 1e-5 * np.maximum(np.abs(other).max(-1), 0.1)).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_every_site_of_many_texts_equals_python(come, named, name):
    guest, model = come(f"?model={name}"), named[name]
    for i, text in enumerate([*TEXTS, "The duck sat by the road. " * 20]):
        status, answer = guest.ask("/api/tokens", model=name, text=text)
        try:
            ids = model.tokenizer.encode(text)[: model.config.n_context]
        except UserError as error:  # which also gives the character's name
            message = re.sub(r"(U\+\w+)[^)]*", r"\1", str(error))
            assert (status, answer["error"]["message"]) == (400, message)
            continue
        assert status == 200
        assert answer["ids"][: len(ids)] == ids, text
        trace = model.inspect(ids)
        sites = [str(site) for site in trace.sites()]
        edit = {"site": "block.0.head.1.output", "value": 0}
        for edits in ([], [edit]) if i < 3 else ([],):
            traced = trace.edit({"block.0.head.1.output": 0.0}) if edits else trace
            reads = [{"site": site} for site in sites]
            status, arrays = guest.ask("/api/sites", model=name, text=ids, edits=edits, reads=reads)
            assert status == 200
            wrong = [
                site
                for site, array in zip(sites, arrays, strict=True)
                if not close(array, traced[site].detach().float().numpy())
            ]
            assert not wrong, (text, wrong[:5])


def test_typed_texts_run_in_the_browser(come, named):
    guest = come("?model=modern&block=1&head=1&step=softmax")
    guest.type("The cat was too")
    trace, at = numbers_of(named["modern"], "The cat was too")
    guest.expect(lambda: len(guest.said), len(trace))
    check(guest.see("block.1.head.1.weights"), "block.1.head.1.weights", at, len(trace) - 1)
    chances = trace.logits[-1].softmax(-1).topk(8).values.tolist()
    shown = guest.page.locator(".next .share").all_inner_texts()
    assert all(shows(text, chance, percent) for text, chance in zip(shown, chances, strict=False))
    assert not [each for each in guest.asked if "/api/" in each.url]


def test_a_link_with_an_unknown_character_opens_another_text(come):
    guest = come("?model=shared&text=%CE%A9")
    guest.page.get_by_text("The text in this address does not fit this model").wait_for()
    guest.expect(lambda: guest.page.locator(".next .share").count() > 0, True)


@pytest.mark.slow
def test_the_senses_of_a_word_are_compared_in_the_browser(come):
    guest = come("?view=words")
    guest.page.get_by_label("Word", exact=True).fill("duck")
    guest.page.get_by_role("textbox", name="Sentences").fill("The duck was tired\nA duck swam\nThe duck")
    guest.page.get_by_text("The first two principal components explain").wait_for()
    guest.page.get_by_text("Nearest neighbors of the selected token").wait_for()


@pytest.mark.parametrize("view", ["learning", "labs", "training", "report"])
def test_a_view_that_was_not_published_is_said_to_be_missing(come, view):
    guest = come(f"?view={view}")
    guest.page.get_by_text("Part of this address is invalid").wait_for()
    guest.page.locator(".detail h2").wait_for()


def test_the_greedy_continuation_equals_python(come, named):
    guest = come("?model=lecture")
    for name in KINDS:
        model = named[name]
        ids = model.tokenizer.encode("The duck")
        for _ in range(100):
            _, answer = guest.ask(
                "/api/trace", model=name, text=ids[-model.config.n_context :], count=1, sites=False
            )
            with torch.no_grad():
                logits = model.network(torch.tensor([ids[-model.config.n_context :]]))[0, -1]
            assert answer["next"][0]["id"] == logits.argmax().item()
            ids.append(logits.argmax().item())


@pytest.mark.slow
def test_the_page_opens_without_a_network_after_one_visit(browser, host):
    context = browser.new_context(viewport={"width": 1366, "height": 768}, locale="en-GB")
    context.add_init_script("localStorage.setItem('walked', 'yes')")
    guest = LiveGuest(context, host)
    guest.open("?model=gpt2")
    guest.expect(lambda: guest.page.evaluate(STORED), True)
    context.set_offline(True)
    guest.page.reload()
    guest.settle()
    guest.type("A cat")
    guest.settle()
    guest.expect(lambda: guest.page.locator(".next .share").count() > 0, True)
    guest.page.goto(f"{host.url}{PATH}index.html?model=gpt2")
    guest.settle()
    # The other model was never opened.
    reason = "modern has not been loaded in this browser yet: loading it the first time requires a network connection"
    choose = guest.page.locator("button.model", has_text="modern").click
    guest.page.locator("button.chosen").click()
    choose()
    guest.page.locator("button.model .error", has_text=reason).wait_for()
    guest.page.goto(f"{host.url}{PATH}?model=modern")
    guest.page.get_by_role("alert").filter(has_text=reason).wait_for()
    context.set_offline(False)
    guest.page.locator("button.chosen").click()
    choose()
    guest.page.locator("button.chosen", has_text="modern").wait_for()
    guest.settle()
    context.close()


@pytest.mark.slow
def test_a_model_runs_in_one_file(browser, named, tmp_path):
    path = tmp_path / "mine.html"
    ch.save_html(named["gpt2"], path)
    context = browser.new_context(viewport={"width": 1366, "height": 768}, locale="en-GB", offline=True)
    context.add_init_script(ASK)
    guest = LiveGuest(context, SimpleNamespace(url="file://"))
    guest.page.goto(path.as_uri())
    guest.settle()
    guest.type("A cat")
    guest.settle()
    ids = named["gpt2"].tokenizer.encode("A cat")
    _, (logits,) = guest.ask("/api/sites", model="gpt2", text=ids, edits=[], reads=[{"site": "logits"}])
    assert close(logits, named["gpt2"].inspect("A cat").logits.numpy())
    asked = {request.url.split("?")[0] for request in guest.asked if not request.url.startswith("blob:")}
    assert asked == {path.as_uri()}
    assert not guest.left()
    context.close()


def test_a_damaged_weight_file_is_named(come, host):
    folder = host.root / PATH.strip("/") / "model-0"
    (piece,) = folder.glob("weights-*.bin")
    content = piece.read_bytes()
    try:
        piece.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        status, answer = come("?model=gpt2").ask("/api/open", model="lecture")
        assert status == 500
        assert re.search(
            rf"{piece.name} is damaged: it is not the file that was published", answer["error"]["message"]
        )
        piece.write_bytes(content[:-1])
        # Another guest: a browser may answer from its cache for a while.
        _, answer = come("?model=gpt2").ask("/api/open", model="lecture")
        assert f"it has {len(content) - 1} bytes" in answer["error"]["message"]
    finally:
        piece.write_bytes(content)


def test_hostile_names_run_nothing(browser, models, tmp_path):
    hostile = "</script><img src=x onerror=alert(1)>\u202e" + "n" * 100
    model = LanguageModel(models["lecture"].network, models["lecture"].tokenizer, name=hostile)
    save_live_html(model, tmp_path / "x.html", texts=["</script><script>alert(1)</script>"])
    context = browser.new_context(locale="en-GB")
    page = context.new_page()
    alerts = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    page.goto((tmp_path / "x.html").as_uri())
    page.locator("main[aria-busy=false] canvas").first.wait_for()
    assert page.locator("img").count() == 0
    assert not alerts
    context.close()


def test_a_folder_is_replaced_by_either_kind_of_page(named, tmp_path):
    folder, notes = tmp_path / "x", tmp_path / "x" / "notes.txt"
    modern, gpt2 = named["modern"], named["gpt2"]
    publish(modern, folder, ["A duck"], heads=[(0, 0)], labs=False)
    notes.write_text("mine")
    for write in (
        lambda: publish_live([modern, gpt2], folder, "int8", labs=False),
        lambda: publish_live([gpt2], folder, texts=["A cat"], labs=False),
        lambda: publish(modern, folder, ["A duck"], heads=[(0, 0)], labs=False),
    ):
        check_folder(folder)
        written = write()
        found = {path for path in folder.rglob("[!.]*") if path.is_file()}
        assert found == {path for path in written if path.name != ".nojekyll"} | {notes}
    index = folder / "live.json"
    publish_live([gpt2], folder, texts=["A cat"], labs=False)
    (model,) = json.loads(index.read_text())["models"]
    assert model["answers"]["/api/opening"]["text"] == "A cat"
    assert model["answers"]["/api/examples"]["texts"] == ["A cat"]


def test_what_cannot_be_published_is_refused(named, tmp_path, monkeypatch):
    with pytest.raises(UserError, match="two models are called 'gpt2'"):
        publish_live([named["gpt2"], named["gpt2"]], tmp_path / "x", labs=False)
    with pytest.raises(UserError, match="is a folder"):
        save_live_html(named["gpt2"], tmp_path)
    with pytest.raises(UserError, match="there is no folder"):
        save_live_html(named["gpt2"], tmp_path / "none" / "x.html")
    monkeypatch.setattr(live_page, "MAX_ONE_FILE", 100)
    with pytest.raises(UserError, match="the limit for one file is"):
        save_live_html(named["gpt2"], tmp_path / "x.html")
    with pytest.raises(UserError, match="leave out views"):
        ch.save_html(named["gpt2"], tmp_path / "x.html", ["flow"])
    assert not list(tmp_path.iterdir())


def test_bad_input_is_refused_before_heads_are_scored(named, tmp_path, monkeypatch):
    def score(*_):
        pytest.fail("heads were scored")

    monkeypatch.setattr(live_page, "_request", score)
    model = named["shared"]  # of single characters
    too_long = "a" * (model.config.n_context + 1)
    for texts, message in ([["A cat", "Ω"], "Ω"], [["A", "A"], "given twice"], [[too_long], "context"]):
        with pytest.raises(UserError, match=message):
            publish_live([model], tmp_path / "x", texts=texts, labs=False)
        with pytest.raises(UserError, match=message):
            save_live_html(model, tmp_path / "x.html", texts=texts)
    monkeypatch.setattr(os, "access", lambda *_: False)
    (tmp_path / "full").mkdir()
    with pytest.raises(UserError, match="full is not writable"):
        publish_live([model], tmp_path / "full", labs=False)
    with pytest.raises(UserError, match=r"x.html cannot be saved: .* is not writable"):
        save_live_html(model, tmp_path / "x.html")
    assert [path.name for path in tmp_path.rglob("*")] == ["full"]


def test_a_domain_name_in_the_folder_is_kept(named, tmp_path):
    (tmp_path / "CNAME").write_text("example.org")
    for publish_again in (False, True):
        publish_live([named["gpt2"]], tmp_path, labs=False)
        assert (tmp_path / "CNAME").read_text() == "example.org", publish_again
