"""Smoke test in a real browser, in a few seconds: every view opens and shows Python's numbers."""

import pytest

from tests.web.visitor import percent, shows

TEXT = "The duck was too tired"
VIEWS = ("Step by step", "Attribution", "Compare", "Edit", "Logit lens", "Word vectors")


@pytest.mark.smoke
def test_the_page_shows_what_python_computes(visitor, models):
    trace = models["modern"].inspect(TEXT)
    visitor.open(model="modern", text="a", block=1, head=1, step=6)
    visitor.type(TEXT)
    weights = trace["block.1.head.1.weights"]
    for row, column, text in visitor.see("block.1.head.1.weights")["cells"]:
        assert shows(text, weights[row, column].item())
    shares = visitor.page.locator(".next .share").all_inner_texts()
    chances = trace.logits[-1].softmax(-1).topk(len(shares)).values.tolist()
    assert all(shows(text, chance, percent) for text, chance in zip(shares, chances, strict=True))
    views = visitor.page.get_by_role("navigation", name="Views").get_by_role("button")
    assert set(VIEWS) <= set(views.all_inner_texts())
    for view in views.all():
        view.click()
        visitor.expect(lambda view=view: view.get_attribute("aria-current"), "page")
        visitor.page.locator("main[aria-busy=false]").wait_for()
