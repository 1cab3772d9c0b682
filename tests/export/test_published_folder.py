"""Published folders, served by a static web host under a subpath, without network access."""

import json
import os
import sys
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from clearhead.errors import UserError
from clearhead.export import published_folder, site_labs
from clearhead.export.published_folder import publish
from clearhead.export.saved_page import pack
from clearhead.export.site import INDEX_FILE, check_folder
from clearhead.labs.catalog import LABS
from clearhead.labs.catalog import lab as run_lab
from clearhead.labs.opening import find_head
from clearhead.page.assets import has_bundles
from tests.export.static_host import PATH, Guest, receiving, serving
from tests.web.test_lecture_000 import cosine, trace_of
from tests.web.test_lecture_001 import sees
from tests.web.test_numbers import check, numbers_of
from tests.web.visitor import percent, shows, visible

TEXTS = ["The duck was too tired", "The duck was too happy", "A cat sat by the road"]

pytestmark = pytest.mark.skipif(
    not has_bundles(), reason="the page is not built: run `pip install .` with npm installed"
)


@pytest.fixture(scope="module")
def model(models):
    return models["modern"]


@pytest.fixture(scope="module")
def host(model, tmp_path_factory):
    """A host with a published folder."""
    root = tmp_path_factory.mktemp("host")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(site_labs, "PUBLISHED_LABS", ("attention", "scale"))
        publish(model, root / PATH.strip("/"), TEXTS)
    with serving(root) as host:
        yield host


class PublishedGuest(Guest):
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
    with receiving(browser) as receive:

        def open_page(width=1800, query="", **settings):
            guest = receive(PublishedGuest, host, width, 1000, **settings)
            guest.context.route(
                lambda url: not url.startswith((host.url, "blob:", "data:")), lambda route: route.abort()
            )
            guest.open(query)
            return guest

        yield open_page


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


def test_page_opens_on_the_head_chosen_for_the_first_text(come, host, model):
    found = find_head(model.inspect(TEXTS[0]))
    index = json.loads((host.root / PATH.strip("/") / INDEX_FILE).read_text(encoding="utf-8"))
    assert index["opening"] == {"block": found.block, "head": found.head, "row": found.row}
    # A head and a row other than those that a page opens on by default.
    guest = come()
    guest.page.route(
        f"**/{INDEX_FILE}",
        lambda route: route.fulfill(json={**index, "opening": {"block": 1, "head": 0, "row": 2}}),
    )
    guest.open()
    title = guest.page.get_by_role("heading", name="Block 1, head 0: attention from")
    token = visible(model.inspect(TEXTS[0]).tokens[2])
    guest.expect(title.inner_text, f"Block 1, head 0: attention from “{token}”")


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
    assert parse_qs(urlsplit(guest.url).query)["text"] == [TEXTS[2]]
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
    guest = come(query="?text=Nobody+published+this&target=3")
    guest.expect(guest.prompt.input_value, TEXTS[0])
    assert guest.prompt.get_attribute("readonly") is not None
    assert guest.page.locator(".problem").count() == 0


def test_compare_view_shows_differences_between_two_texts(come, model):
    guest = come(query="?view=compare")
    compared = model.inspect(TEXTS[0]).compare(model.inspect(TEXTS[1]))
    chooser = guest.page.get_by_role("combobox", name="Other text")
    guest.expect(chooser.input_value, TEXTS[1])  # the next text by default
    site, distance = compared.ranking(1)[0]
    row = guest.page.locator(f".sites button:has([data-site='{site}'])")
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
    guest.page.locator(f".sites [data-site='{site}']").wait_for()
    guest.choose(TEXTS[2])  # a text is not compared with itself
    guest.expect(chooser.input_value, TEXTS[0])


def test_attribution_lens_and_word_vector_views_load(come, model):
    guest = come(query="?view=why&target=99999")
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
    guest.page.get_by_label("key matrix, row 0, column 0").fill("10")
    guest.page.get_by_label("key matrix, row 1, column 1").fill("10")
    weights = guest.page.locator(".tiny")
    guest.expect(lambda: "0.99986" in weights.inner_text(), True)
    guest.page.get_by_text("To use Edit").wait_for()


def test_lectures_work_without_a_server(come):
    guest = come(query="?view=lectures&stop=001.5")
    guest.page.get_by_role("spinbutton", name="Zeros").fill("3")
    guest.page.get_by_role("spinbutton", name="Key boost").fill("10")
    figure = guest.page.get_by_role("group", name="Figure")
    guest.expect(lambda: "0.99986" in figure.inner_text(), True)
    # The lab would have to be run with these settings.
    assert guest.page.get_by_role("button", name="Open in Labs").count() == 0
    guest.page.get_by_role("textbox", name="Your answer").fill("4.6")
    guest.button("Check").click()
    guest.page.get_by_text("1 of 9 answered").wait_for()
    guest.page.keyboard.press("Escape")
    guest.button("← Previous stop").click()
    guest.expect(lambda: "stop=001.4" in guest.url, True)
    guest.button("Open in Tiny head").click()
    guest.page.get_by_label("query matrix, row 0, column 1").wait_for()
    guest.page.go_back()
    guest.page.get_by_role("heading", name="Keys and a query").wait_for()
    guest.page.reload()
    guest.page.get_by_text("1 of 9 answered").wait_for()


def test_lecture_002_trains_and_measures_without_a_server(come):
    guest = come(query="?view=lectures&stop=002.1")
    guest.button("Train 6 models").click()
    figure = guest.page.get_by_role("group", name="Figure")
    guest.expect(lambda: "lowest at width 8." in figure.inner_text(), True)
    guest.page.get_by_role("textbox", name="Your answer").fill("4")
    guest.button("Check").click()
    guest.page.get_by_text("1 of 11 answered").wait_for()
    guest.page.keyboard.press("Escape")
    guest.button("Next stop →").click()
    guest.page.get_by_role("heading", name="002.2").wait_for()
    guest.button("Next stop →").click()
    guest.page.get_by_role("heading", name="002.3").wait_for()
    assert guest.page.get_by_role("button", name="Open in Attribution").count() == 0
    guest.page.get_by_role("navigation", name="Stops").get_by_role("button", name="Loops").click()
    guest.button("Measure the time").click()
    guest.expect(guest.page.locator(".figure dd").count, 3)


def test_model_figures_show_saved_numbers(come, model):
    guest = come(query="?view=lectures&stop=000.1")
    sites = ("embedding", "block.0.output", "block.1.output")
    (_, at), (_, at_other) = trace_of(model, TEXTS[0]), trace_of(model, TEXTS[2])
    sentences = [guest.page.get_by_label(f"Sentence {i}") for i in (1, 2)]
    assert [each.locator("option").all_inner_texts() for each in sentences] == 2 * [TEXTS]
    sentences[1].select_option(TEXTS[2])
    pieces = [model.inspect(text).pieces[0] for text in (TEXTS[0], TEXTS[2])]
    shared = next(piece for piece in pieces[0] if piece in pieces[1])
    guest.page.get_by_label("Token in both").select_option(index=0)
    rows = [len(each) - 1 - each[::-1].index(shared) for each in pieces]
    vectors = [(at(site)[rows[0]], at_other(site)[rows[1]]) for site in sites]
    cosines = [cosine(*pair) for pair in vectors]
    sees(guest, "cosine of the two vectors", [cosines], 3)
    guest.page.keyboard.press("Escape")
    for stop in ("000.2", "000.3", "000.6", "000.7", "000.8", "000.9"):
        guest.open(f"?view=lectures&stop={stop}&block=1&head=1")
        if (source := guest.button("In the model")).count():
            source.click()
            guest.settle()
        assert "–" not in guest.page.get_by_role("group", name="Figure").inner_text(), stop
    guest.open("?view=lectures&stop=000.9")
    lengths = [np.linalg.norm(at(site)[-1]) for site in ("block.1.output", "block.0.output", "block.0.input")]
    table = guest.page.get_by_role("table", name="the stack").locator("tbody tr td:nth-last-child(2)")
    guest.expect(lambda: [float(each) for each in table.all_inner_texts()], pytest.approx(lengths, abs=6e-3))


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
    assert listing["views"] == ["steps", "why", "lens", "words", "lectures", "tiny"]
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


@pytest.mark.slow
def test_every_lab_is_published_with_the_model_it_inspects(model, tmp_path, monkeypatch):
    pytest.importorskip("numba", reason="the neighbors lab needs numba")
    pytest.importorskip("sklearn", reason="the pronoun lab needs scikit-learn")
    quick = {
        "any-one": {"trained": "short", "seeds": 1, "steps": 2},
        "matrix": {"longest": 8, "repeats": 1},
        "senses": {"seeds": 1, "steps": 2},
        "pronoun": {"seeds": 1, "steps": 2},
        "neighbors": {"stories": 500, "epochs": 1},
        "stream": {"steps": 20},
    }
    monkeypatch.setattr(site_labs, "lab", lambda name: run_lab(name, **quick.get(name, {})))
    told = []
    publish(model, tmp_path / "x", TEXTS[:1], heads=[(0, 0)], log=told.append)
    saved = json.loads((tmp_path / "x" / "labs.json").read_text())
    assert [each["name"] for each in saved["labs"]] == list(LABS)
    assert [each["lab"] for each in saved["results"]] == list(LABS)
    count = len(LABS)
    for number, name in enumerate(LABS, 1):
        trains = ", which trains a model" if LABS[name].long else ""
        assert f"lab {number} of {count}: running {name}{trains} …" in told
    # The page would name the published model as the inspected one.
    assert all(each["model"] is None for each in saved["labs"])
    findings = {each["lab"]: each["findings"] for each in saved["results"]}
    for name in ("window", "blank", "pronoun"):
        assert {"name": "model", "value": "stories"} in findings[name]
    assert (tmp_path / "x" / "labs.json").stat().st_size < 100_000


@pytest.mark.parametrize(
    ("name", "module", "package"), [("neighbors", "numba", "numba"), ("pronoun", "sklearn", "scikit-learn")]
)
def test_labs_that_need_a_missing_package_are_skipped(model, tmp_path, monkeypatch, name, module, package):
    monkeypatch.setattr(site_labs, "PUBLISHED_LABS", ("attention", name))
    monkeypatch.setitem(sys.modules, module, None)
    told = []
    publish(model, tmp_path / "x", TEXTS[:1], heads=[(0, 0)], log=told.append)
    assert any(f"skipping the lab {name}, which needs {package}" in each for each in told)
    assert [each["name"] for each in json.loads((tmp_path / "x" / "labs.json").read_text())["labs"]] == [
        "attention"
    ]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in its file system")
@pytest.mark.parametrize("index", ["publication.json", "live.json"])
def test_pipe_named_like_an_index_is_not_read(index, tmp_path):
    os.mkfifo(tmp_path / index)
    with pytest.raises(UserError, match=f"contains other files .{index}"):
        check_folder(tmp_path)


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
    for folder, texts, heads, message in [
        (tmp_path, TEXTS, None, "contains other files .notes.txt"),
        (tmp_path / "notes.txt", TEXTS, None, "is a file"),
        (tmp_path / "x", [], None, "no text to publish"),
        (tmp_path / "x", ["one", "two", "one"], None, "'one' is given twice"),
        (tmp_path / "x", TEXTS, [(2, 0)], "block"),
        (tmp_path / "x", TEXTS, [(0, 9)], "head"),
    ]:
        with pytest.raises(UserError, match=message):
            publish(model, folder, texts, heads, labs=False)
    monkeypatch.setattr(published_folder, "MAX_WEIGHTS", 100)
    with pytest.raises(UserError, match=r"the limit is 100: select some heads, such as 3\.5"):
        publish(model, tmp_path / "x", TEXTS, labs=False)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_pack_returns_bytes():
    assert isinstance(pack({}, []), bytes)


def test_texts_without_a_token_in_common_are_published(model, tmp_path):
    texts = ["Ella", " river"]
    one, other = (set(model.inspect(text).pieces[0]) for text in texts)
    assert not one & other
    publish(model, tmp_path / "x", texts, heads=[(0, 0)], labs=False)
    assert (tmp_path / "x" / "text-1.bin").is_file()
