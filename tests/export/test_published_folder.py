"""Published folders, served by a static web host under a subpath, without a network."""

import json
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from clearhead.errors import UserError
from clearhead.export import published_folder
from clearhead.export.published_folder import publish
from clearhead.export.saved_page import pack
from clearhead.page.assets import has_bundles
from tests.web.test_numbers import check, numbers_of
from tests.web.visitor import Visitor, percent, shows

TEXTS = ["The duck was too tired", "The duck was too happy", "A cat sat by the road"]
PATH = "/user/clearhead/"

pytestmark = pytest.mark.skipif(
    not has_bundles(), reason="the page is not built: run `pip install .` with npm installed"
)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def model(models):
    return models["modern"]


@pytest.fixture(scope="module")
def host(model, tmp_path_factory):
    """Serve a published folder as any static web host does."""
    root = tmp_path_factory.mktemp("host")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(published_folder, "PUBLISHED_LABS", ("attention", "scale"))
        publish(model, root / PATH.strip("/"), TEXTS)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", root=root)
    server.shutdown()
    server.server_close()
    thread.join()


class Guest(Visitor):
    def open(self, query=""):
        self.page.goto(f"{self.server.url}{PATH}{query}")
        self.settle()
        self.page.locator(".brand").click()

    def choose(self, text):
        self.button("Texts ▾").click()
        self.button(text).click()
        self.expect(self.prompt.input_value, text)
        self.settle()

    def go(self, view):
        self.page.get_by_role("navigation", name="Views").get_by_role("button", name=view).click()

    @property
    def files(self):
        return [urlsplit(each.url).path.removeprefix(PATH) for each in self.asked if "blob:" not in each.url]


@pytest.fixture
def come(browser, host):
    """Open pages, then check that the browser logged no errors."""
    made = []

    def open_page(width=1800, query="", **settings):
        context = browser.new_context(
            viewport={"width": width, "height": 1000}, **{"locale": "en-GB", **settings}
        )
        context.route(
            lambda url: not url.startswith((host.url, "blob:", "data:")), lambda route: route.abort()
        )
        context.add_init_script("localStorage.setItem('walked', 'yes')")
        guest = Guest(context, host)
        made.append(guest)
        guest.open(query)
        return guest

    yield open_page
    left = [complaint for guest in made for complaint in guest.left()]
    for guest in made:
        guest.context.close()
    assert not left


def see_softmax(guest, model, text):
    """Check the selected head's weights, a formula and the next tokens against Python."""
    trace, at = numbers_of(model, text)
    guest.page.mouse.move(0, 0)
    guest.expect(lambda: len(guest.said), len(trace))
    seen = guest.see("block.1.head.1.weights")
    assert {row for row, _, _ in seen["cells"]} == set(range(len(trace)))
    check(seen, "block.1.head.1.weights", at, len(trace) - 1)
    chances = trace.logits[-1].softmax(-1).topk(9).values.tolist()
    guest.expect(
        lambda: shows(guest.page.locator(".next .share").first.inner_text(), chances[0], percent), True
    )
    shown = guest.page.locator(".next .share").all_inner_texts()
    assert all(shows(text, chance, percent) for text, chance in zip(shown, chances, strict=True))


def test_texts_are_fetched_when_selected(come, model):
    guest = come(query="?block=1&head=1&step=softmax")
    see_softmax(guest, model, TEXTS[0])
    assert [name for name in guest.files if name.startswith("text-")] == ["text-0.bin"]
    guest.choose(TEXTS[2])
    see_softmax(guest, model, TEXTS[2])  # block, head and step are unchanged
    guest.page.go_back()
    guest.expect(guest.prompt.input_value, TEXTS[0])
    see_softmax(guest, model, TEXTS[0])
    guest.page.go_forward()
    guest.expect(guest.prompt.input_value, TEXTS[2])
    guest.page.reload()
    guest.settle()
    see_softmax(guest, model, TEXTS[2])
    assert parse_qs(urlsplit(guest.page.url).query)["text"] == [TEXTS[2]]
    assert "text-1.bin" not in guest.files
    assert "labs.json" not in guest.files


def test_numbers_can_be_traced_to_the_embedding(come, model):
    _, at = numbers_of(model, TEXTS[0])
    guest = come(query="?part=embedding")
    seen = guest.see("embedding")
    check(seen, "embedding", at, len(model.inspect(TEXTS[0])) - 1)
    guest.page.locator("[data-testid=card] .number[data-cell^='embedding.W ']").first.click()
    guest.expect(lambda: "a trained weight" in guest.page.get_by_test_id("card").inner_text(), True)


def test_unknown_text_in_url_falls_back_to_the_first(come):
    guest = come(query="?text=Nobody+published+this&word=3")
    guest.expect(guest.prompt.input_value, TEXTS[0])
    assert guest.prompt.get_attribute("readonly") is not None
    assert guest.page.locator(".problem").count() == 0


def test_compare_view_shows_differences_between_two_texts(come, model):
    guest = come(query="?view=compare")
    compared = model.inspect(TEXTS[0]).compare(model.inspect(TEXTS[1]))
    chooser = guest.page.get_by_role("combobox", name="Other text")
    guest.expect(chooser.input_value, TEXTS[1])  # the next text by default
    site, distance = compared.ranking(1)[0]
    row = guest.page.locator(".compare .body button").filter(has_text=site).first
    row.wait_for()
    assert shows(row.locator(".number").inner_text(), distance)
    row.click()
    difference = compared.difference(site).tolist()
    seen = guest.page.locator(f".compare [role=grid][data-site='{site}'] [role=gridcell]")
    seen.first.wait_for()
    for cell in seen.all():
        i, j = int(cell.get_attribute("data-row")), int(cell.get_attribute("data-column"))
        assert shows(cell.inner_text(), difference[i][j])
    chooser.select_option(TEXTS[2])
    other = model.inspect(TEXTS[0]).compare(model.inspect(TEXTS[2]))
    site = other.ranking(1)[0][0]
    guest.page.locator(".compare .body button").filter(has_text=site).first.wait_for()
    guest.choose(TEXTS[2])  # a text is not compared with itself
    guest.expect(chooser.input_value, TEXTS[0])


def test_attribution_lens_and_word_vector_views_load(come, model):
    guest = come(query="?view=why&word=99999")
    trace = model.inspect(TEXTS[0])
    likeliest = trace.logits[-1].argmax().item()
    total = guest.page.get_by_test_id("total")
    total.wait_for()
    shown = float(total.inner_text().replace("−", "-").split()[-1])
    assert shown == pytest.approx(trace.attribute(likeliest).total, abs=0.002)
    guest.go("Logit lens")
    guest.page.locator(".lens tbody tr").first.wait_for()
    guest.go("Word vectors")
    guest.page.locator(".words ol li").first.wait_for()
    guest.go("All heads")
    guest.page.get_by_label("Sort by").select_option("previous")
    guest.page.get_by_role("button", name="only", exact=False).first.wait_for()
    assert guest.page.locator("[role=alert]").count() == 0


def test_labs_show_results_and_tiny_head_is_editable(come):
    guest = come(query="?view=labs")
    guest.expect(guest.page.locator(".labs nav button").count, 2)
    weight = guest.page.locator("[data-findings='weight on the target']")
    weight.wait_for()
    assert weight.inner_text() == "0.4754"
    assert guest.page.locator(".labs .settings label").count() == 0
    guest.page.get_by_text("clearhead lab attention").wait_for()
    guest.button("Edit the matrices by hand").click()
    guest.page.get_by_label("W^K, row 0, column 0").fill("10")
    guest.page.get_by_label("W^K, row 1, column 1").fill("10")
    weights = guest.page.locator(".tiny")
    guest.expect(lambda: "0.99986" in weights.inner_text(), True)
    guest.page.get_by_text("Install Clearhead for Edit").wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (360, "dark")])
def test_pages_are_accessible(come, axe, width, scheme):
    guest = come(width, color_scheme=scheme)
    guest.button("Texts ▾").click()
    assert axe(guest) == []
    guest.page.keyboard.press("Escape")
    assert guest.page.evaluate("document.documentElement.scrollWidth") <= width
    for view in ("Compare", "Labs"):
        guest.go(view)
        guest.page.wait_for_timeout(300)
        assert axe(guest) == []


@pytest.mark.slow
def test_only_selected_heads_are_published(model, tmp_path):
    publish(model, tmp_path / "x", TEXTS[:1], heads=[(1, 1)], labs=False)
    listing = json.loads((tmp_path / "x" / "publication.json").read_text())
    assert listing["views"] == ["steps", "why", "lens", "words", "tiny"]
    publish(model, tmp_path / "y", TEXTS[:1], labs=False)
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("x", "y")]
    assert sizes[0] < sizes[1] / 4


@pytest.mark.slow
def test_republishing_keeps_other_files(model, tmp_path):
    (tmp_path / ".git").mkdir()
    publish(model, tmp_path, TEXTS[:2], heads=[(0, 0)], labs=False)
    (tmp_path / "CNAME").write_text("example.org")
    (tmp_path / "text-mine.bin").write_text("mine")
    (tmp_path / ".nojekyll").write_text("mine")
    publish(model, tmp_path, TEXTS[:1], heads=[(0, 0)], labs=False)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"CNAME", ".git", "text-0.bin", "text-mine.bin", "index.html"} <= names
    assert (tmp_path / ".nojekyll").read_text() == "mine"
    assert "text-1.bin" not in names


def test_labs_that_need_numba_are_skipped_without_it(model, tmp_path, monkeypatch):
    monkeypatch.setattr(published_folder, "PUBLISHED_LABS", ("attention", "neighbors"))
    monkeypatch.setitem(sys.modules, "numba", None)
    told = []
    publish(model, tmp_path / "x", TEXTS[:1], heads=[(0, 0)], log=told.append)
    assert any("skipping the lab neighbors, which needs numba" in each for each in told)
    assert [each["name"] for each in json.loads((tmp_path / "x" / "labs.json").read_text())["labs"]] == [
        "attention"
    ]


def test_folders_with_other_files_are_not_overwritten(model, tmp_path):
    (tmp_path / "publication.json").write_text('{"title": "my paper"}')
    with pytest.raises(UserError, match="contains other files"):
        publish(model, tmp_path, TEXTS[:1], labs=False)
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    for folder, message in (
        (tmp_path / "broken", "broken is a file"),
        (tmp_path / "publication.json" / "x", "publication.json is not a writable folder"),
    ):
        with pytest.raises(UserError, match=message):
            publish(model, folder, TEXTS[:1], labs=False)


def test_published_files_contain_no_local_paths(host):
    folder = host.root / PATH.strip("/")
    for path in folder.iterdir():
        assert str(host.root).encode() not in path.read_bytes()
    assert "http" not in (folder / "index.html").read_text().replace("http-equiv", "").replace(
        "http.server", ""
    )


def test_invalid_publish_arguments_are_rejected(model, tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("mine")
    for folder, texts, heads, words in [
        (tmp_path, TEXTS, None, "contains other files .notes.txt"),
        (tmp_path / "notes.txt", TEXTS, None, "is a file"),
        (tmp_path / "x", [], None, "no text to publish"),
        (tmp_path / "x", ["one", "two", "one"], None, "'one' is given twice"),
        (tmp_path / "x", TEXTS, [(2, 0)], "block"),
        (tmp_path / "x", TEXTS, [(0, 9)], "head"),
    ]:
        with pytest.raises(UserError, match=words):
            publish(model, folder, texts, heads, labs=False)
    monkeypatch.setattr(published_folder, "MAX_WEIGHTS", 100)
    with pytest.raises(UserError, match="the limit is 100: select heads, such as --head"):
        publish(model, tmp_path / "x", TEXTS, labs=False)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_pack_returns_bytes():
    assert isinstance(pack({}, []), bytes)
