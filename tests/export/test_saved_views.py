"""Views of a saved page other than the steps: which ones exist, and that they show Python's numbers."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from clearhead.errors import UserError
from clearhead.export import saved_views
from clearhead.export.precompute import MAX_QUERIES
from clearhead.export.saved_page import save_html
from clearhead.export.saved_trace import save_trace
from clearhead.export.saved_views import choose_views
from clearhead.labs.opening import Opening
from clearhead.language_model import LanguageModel
from tests.web.test_analysis_views import filled, number
from tests.web.visitor import fixed, percent, shows, visible

TEXT, OTHER = "The duck was too tired", "The duck was too happy"


@pytest.fixture
def model(models):
    return models["modern"]


def tabs(reader):
    return reader.page.get_by_role("navigation", name="Views").get_by_role("button")


def test_tabs_list_the_saved_views(read, model, tmp_path):
    save_html(model.inspect(TEXT), tmp_path / "x.html", ["why", "flow", "block.1.head.1", "lens"])
    reader = read(tmp_path / "x.html")
    assert tabs(reader).all_inner_texts() == ["Step by step", "All heads", "Attribution", "Logit lens"]
    assert (
        reader.page.locator("nav [aria-current=page]").inner_text() == "Attribution"
    )  # the first view given
    reader.page.get_by_text("Not included in this file: Compare, Edit, Word vectors, Learning.").wait_for()
    tabs(reader).first.click()
    reader.see("block.1.head.1.query_raw")


def test_page_opens_on_the_head_with_the_clearest_role(model, monkeypatch):
    chosen = Opening("", 2, 1, 0, "previous", 0.9)
    monkeypatch.setattr(saved_views, "find_head", lambda _: chosen)
    for names in (None, ["flow"], ["ends"]):
        views = choose_views(names, model.inspect(TEXT))
        assert (views.heads, views.row) == ([(1, 0)], 2)
        header, _ = save_trace(model.inspect(TEXT), views)
        query = parse_qs(urlsplit(header["query"]).query)
        assert (query["block"], query["head"], query["row"]) == (["1"], ["0"], ["2"])
    assert choose_views(["flow", "block.1.head.1"], model.inspect(TEXT)).heads == [(1, 1)]


def test_attribution_says_that_a_file_has_no_differences(read, model, tmp_path):
    save_html(model.inspect(TEXT), tmp_path / "x.html", ["why"])
    reader = read(tmp_path / "x.html")
    reader.page.get_by_text("To see why this token and not another one, open the model").wait_for()


def test_logit_lens_matches_python(read, model, tmp_path):
    trace = model.inspect(TEXT)
    lens, [first, second] = trace.lens(), trace.logits[-1].topk(2).indices.tolist()
    save_html(trace, tmp_path / "x.html", ["lens"])
    reader = read(tmp_path / "x.html")
    assert tabs(reader).all_inner_texts() == ["Logit lens"]
    rows = reader.page.locator(".lens tbody tr")
    reader.expect(rows.count, 2)
    for k, row in enumerate(rows.all()):
        message = [visible(text) for text in trace.token_texts(lens[k].argmax(-1).tolist())]
        assert row.locator("td").all_inner_texts() == message
    assert rows.locator("th button:enabled").count() == 0  # no block's steps are stored
    reader.page.get_by_label("show the probability of the target token").check()
    for token in (first, second):
        reader.page.get_by_role("combobox", name="Target token").select_option(str(token))
        share = lens[0].softmax(-1)[-1, token].item()
        reader.expect(
            lambda share=share: shows(rows.first.locator("td").last.inner_text(), share, percent), True
        )
    assert reader.page.get_by_role("combobox", name="Target token").locator("option").count() == 5
    reader.page.locator(".lens thead button").first.click()  # a token can be selected
    reader.expect(reader.page.locator(".lens thead .strong").inner_text, visible(trace.tokens[0]))
    assert reader.page.locator(".missed").count() == 0


def test_attribution_paths_match_python(read, model, tmp_path):
    trace = model.inspect(TEXT)
    first, second = trace.logits[-1].topk(2).indices.tolist()
    save_html(trace, tmp_path / "x.html", ["why"])
    reader = read(tmp_path / "x.html")
    total = reader.page.get_by_test_id("total")

    def holds(expected):
        reader.expect(lambda: number(total.inner_text()), pytest.approx(expected.total, abs=0.002))
        for part in reader.page.locator("[data-part]").all():
            value = expected[part.get_attribute("data-part")]
            assert number(part.inner_text()) == pytest.approx(value, abs=0.002)

    holds(trace.attribute(first))
    assert reader.page.locator(".name button:enabled").count() == 0  # no head's steps are stored
    reader.page.locator(".sources button:enabled").first.click()
    hop = reader.page.locator(".path button").last
    reader.expect(hop.is_disabled, True)
    block, head, token = re.fullmatch(r"head (\d+)\.(\d+) from “(.*)”", hop.inner_text()).groups()
    sources = [i for i, each in enumerate(trace.tokens) if visible(each) == token]
    back = [trace.attribute(first, through=[(int(block), int(head), source)]) for source in sources]
    shown = number(total.inner_text())
    holds(min(back, key=lambda each: abs(each.total - shown)))
    # For other tokens, only the first step of the path is stored.
    reader.page.get_by_role("combobox", name="Target token").select_option(str(second))
    holds(trace.attribute(second))
    assert reader.page.locator(".sources button:enabled").count() == 0
    assert reader.page.locator(".error").count() == 0


def test_score_contributions_match_python(read, model, tmp_path):
    trace = model.inspect(TEXT)
    save_html(trace, tmp_path / "x.html", ["why", "block.1.head.1"])
    reader = read(tmp_path / "x.html")
    weights = trace["block.1.head.1.weights"]
    for row in (len(trace) - 1, len(trace) - 2):
        looked_at, second = weights[row].topk(2).indices.tolist()
        scores = trace["block.1.head.1.scores"][row]
        difference = (scores[looked_at] - scores[second]).item()
        reader.page.locator(".katex-html", has_text=f"={fixed(difference, 2)}").wait_for()
        parts = trace.block[1].head[1].why(row, looked_at, against=second).by_key.top(8)
        shown = reader.page.locator(".score li .number[data-part]")
        reader.expect(
            lambda shown=shown: [number(text) for text in shown.all_inner_texts()[:8]],
            pytest.approx([value for _, value in parts], abs=0.002),
        )
        reader.page.keyboard.press("ArrowUp")
    reader.page.locator(".name button:enabled").first.click()
    assert "1.1" in reader.page.locator(".name button:enabled").first.inner_text()


def test_missing_scores_show_a_message(read, models, tmp_path):
    trace = models["long"].inspect(" ".join([TEXT] * 8))
    save_html(trace, tmp_path / "x.html", ["why", "block.0.head.0"])
    reader = read(tmp_path / "x.html")
    reader.page.locator(".score").wait_for()
    for _ in range(MAX_QUERIES):
        reader.page.keyboard.press("ArrowUp")
    reader.page.get_by_text("This is not included in this file.").wait_for()
    assert reader.page.locator(".score").count() == 0
    assert reader.page.locator(".error").count() == 0


def test_neighbors_match_python(read, model, tmp_path):
    trace = model.inspect(TEXT)
    save_html(trace, tmp_path / "x.html", ["words"])
    reader = read(tmp_path / "x.html")
    assert reader.page.locator("textarea:not([readonly])").count() == 0  # the text is read-only
    reader.page.locator("select").last.select_option("3")
    own = model.network.embedding.weight
    nearest = (trace["embedding"][3] @ own.T / own.norm(dim=-1) / trace["embedding"][3].norm()).topk(10)
    shown = reader.page.locator(".lists ol").first.locator("li")
    reader.expect(shown.count, 10)
    reader.expect(
        lambda: shown.locator("span:first-child").all_inner_texts(),
        [visible(text) for text in trace.token_texts(nearest.indices.tolist())],
    )
    cosines = [number(text) for text in shown.locator(".number").all_inner_texts()]
    assert cosines == pytest.approx(nearest.values.tolist(), abs=0.006)


def test_comparison_of_two_texts_matches_python(read, model, tmp_path):
    compared = model.inspect(TEXT).compare(model.inspect(OTHER))
    save_html(compared, tmp_path / "x.html")
    reader = read(tmp_path / "x.html")
    sites = reader.page.locator(".sites li")
    expected = [(site, far) for site, far in compared.ranking(10**6) if far > 0]
    reader.expect(sites.count, min(40, len(expected)))
    listed = [each.get_attribute("data-site") for each in sites.locator(".site").all()]
    distances = dict(expected)
    assert [number(text) for text in sites.locator(".number").all_inner_texts()] == pytest.approx(
        [distances[site] for site in listed], abs=0.006
    )
    for group in ("all sites", "attention weights"):
        reader.page.get_by_label("Filter sites").select_option(label=group)
        first = sites.locator(".site").first
        site, name = first.get_attribute("data-site"), first.inner_text()
        first.click()
        found = filled(reader, f"Difference: {name}")
        difference = compared.difference(site)
        assert len(found) > 20
        for (row, column), text in found.items():
            assert shows(text, difference[row, column].item())
    reader.button("Other text").click()
    other = filled(reader, f"Other text: {name}")
    assert shows(other[3, 1], compared.other[site][3, 1].item())
    chances = compared.other.logits[-1].softmax(-1).topk(6).values.tolist()
    shares = reader.page.get_by_role("list", name="Predictions for the other text").locator(".share")
    assert [
        shows(text, chance, percent) for text, chance in zip(shares.all_inner_texts(), chances, strict=True)
    ] == [True] * 6
    assert reader.page.get_by_role("textbox", name="Other text").count() == 0


def test_comparison_with_an_edit_matches_python(read, model, tmp_path):
    trace = model.inspect(TEXT)
    edited = trace.edit({"block.1.head.1.weights": 0.25})
    save_html(trace.compare(edited), tmp_path / "x.html", ["flow", "block.1.head.1"])
    reader = read(tmp_path / "x.html")
    site, name = "block.1.head.1.weights", "head 1.1 · attention weight"
    reader.page.locator(f".sites [data-site='{site}']").click()
    for which, expected in (("This text", trace), ("Other text", edited)):
        reader.button(which).click()
        assert shows(filled(reader, f"{which}: {name}")[4, 2], expected[site][4, 2].item())
    assert reader.page.locator(".texts b").all_inner_texts() == ["model", "model (1 edit)"]
    tabs(reader).first.click()
    reader.see("block.1.head.1.query_raw")


def test_comparison_of_two_models_matches_python(read, models, tmp_path):
    compared = models["gpt2"].inspect(TEXT).compare(models["lecture"].inspect(TEXT))
    save_html(compared, tmp_path / "x.html")
    reader = read(tmp_path / "x.html")
    first = reader.page.locator(".sites .site").first
    site, name = first.get_attribute("data-site"), first.inner_text()
    for (row, column), text in filled(reader, f"Difference: {name}").items():
        assert shows(text, compared.difference(site).reshape(len(compared.pairs), -1)[row, column].item())


def test_comparison_of_two_snapshots_names_their_steps(read, models, tmp_path):
    early, late = (
        LanguageModel(models[name].network, models[name].tokenizer, name=f"run@{step}")
        for name, step in (("gpt2", 1), ("lecture", 8))
    )
    save_html(early.inspect(TEXT).compare(late.inspect(TEXT)), tmp_path / "x.html")
    reader = read(tmp_path / "x.html")
    reader.page.locator(".sites li").first.wait_for()
    assert reader.page.locator("header .muted").inner_text() == "run@1"
    assert reader.page.locator(".texts b").all_inner_texts() == ["run@1", "run@8"]
    assert reader.page.locator(".error, .problem").count() == 0


def test_sites_that_are_not_stored_are_disabled(read, models, tmp_path):
    model = models["long"]
    text = " ".join([TEXT] * 80)
    save_html(model.inspect(text).compare(model.inspect(text.replace("tired", "happy"))), tmp_path / "x.html")
    reader = read(tmp_path / "x.html")
    doors = reader.page.locator(".sites button")
    reader.expect(lambda: doors.count() > 0, True)
    closed = reader.page.locator(".sites button:disabled")
    assert 0 < closed.count() < doors.count()
    assert closed.first.get_attribute("title").startswith("This is not included in this file.")


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
@pytest.mark.parametrize("views", [["lens"], ["why", "block.0.head.0"], ["words"], ["compare"]])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_views_are_accessible_and_fit_narrow_windows(read, model, tmp_path, views, locale, scheme, axe):
    trace = model.inspect(TEXT)
    save_html(
        trace.compare(model.inspect(OTHER)) if views == ["compare"] else trace, tmp_path / "x.html", views
    )
    reader = read(tmp_path / "x.html", 420, locale=locale, color_scheme=scheme)
    assert len(reader.page.locator(".intro").inner_text()) > 40
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 420
    assert axe(reader) == []


@pytest.mark.parametrize(
    ("views", "message"),
    [
        ([], "views = []: expected a list"),
        ("flow", "views = 'flow': expected a list"),
        (["flow", "lenz"], "view 'lenz' does not exist: expected flow, ends, lens, why, words, a block"),
        (["compare"], "the view 'compare' needs two traces: save_html(trace.compare(other), …)"),
        (["block.2"], "block 2"),
        (["block.0.head.9"], "head 9"),
    ],
)
def test_invalid_views_are_rejected(models, tmp_path, views, message):
    with pytest.raises(UserError, match=re.escape(message)):
        save_html(models["modern"].inspect(TEXT), tmp_path / "x.html", views)
    assert not list(tmp_path.iterdir())


def test_comparisons_open_in_the_compare_view(models):
    trace = models["modern"].inspect(TEXT)
    compared = trace.compare(models["modern"].inspect(OTHER))
    views = choose_views(["lens", "block.1"], compared)
    assert (views.tabs, views.opened) == (["steps", "compare", "lens"], "compare")
    assert views.heads == [(1, 0), (1, 1)]
    views = choose_views(None, compared)
    assert (views.tabs, views.heads, views.flow) == (["compare"], [], False)
