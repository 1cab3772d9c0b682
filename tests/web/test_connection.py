"""Unreachable, restarted and replaced servers, and long texts."""

import json

import pytest

from tests.serving import running

TEXT = "The duck was too tired"
LOST = "The server is not responding"


def test_page_reconnects_to_a_restarted_server(registry, visit):
    with running(registry) as server:
        visitor = visit(server=server)
        visitor.open(model="modern", text=TEXT)
        cells = visitor.see("block.0.head.0.query_raw")["cells"]
        port, token = server.credentials.port, server.credentials.token
    visitor.forgive("ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET")
    visitor.prompt.fill("a")
    visitor.page.get_by_role("alert").filter(has_text=LOST).wait_for()
    with running(registry, token=token, port=port):
        visitor.page.get_by_role("alert").wait_for(state="detached")
        visitor.settle()
        visitor.expect(lambda: visitor.said, ["a"])
        visitor.type(TEXT)
        visitor.expect(lambda: visitor.see("block.0.head.0.query_raw")["cells"], cells)
    visitor.forgive("401")
    with running(registry, token="another-token-0123456789", port=port):
        visitor.prompt.fill("b")
        visitor.page.get_by_role("alert").filter(has_text="does not recognize this page").wait_for()


def test_loaded_values_are_available_offline(visitor):
    visitor.open(model="modern", text=TEXT, step=6)
    weights = visitor.see("block.0.head.0.weights")["cells"]
    visitor.page.keyboard.press("ArrowLeft")
    visitor.see("block.0.head.0.masked")
    visitor.context.set_offline(True)
    visitor.page.keyboard.press("ArrowRight")
    assert visitor.see("block.0.head.0.weights")["cells"] == weights
    visitor.forgive("ERR_INTERNET_DISCONNECTED")
    visitor.page.keyboard.press("PageDown")
    visitor.page.get_by_role("alert").filter(has_text=LOST).wait_for()
    visitor.context.set_offline(False)
    visitor.page.get_by_role("alert").wait_for(state="detached")
    visitor.see("block.1.head.0.weights")


@pytest.fixture
def long_text(models):
    tokenizer = models["long"].tokenizer
    return tokenizer.decode(tokenizer.encode("the duck saw a red ball near the pond. " * 60)[:1100])


@pytest.mark.clock
def test_a_long_text_does_not_block_the_page(visitor, long_text):
    visitor.page.add_init_script(
        """new PerformanceObserver((list) => (window.longest = Math.max(window.longest ?? 0,
          ...list.getEntries().map((each) => each.duration)))).observe({type: "longtask", buffered: true})"""
    )
    visitor.open(model="long", text="a", step=6)
    visitor.type(long_text)
    visitor.page.locator(".map canvas").wait_for()
    assert visitor.page.evaluate("window.longest ?? 0") < 3000


def test_long_text_is_loaded_in_parts(visitor, models, long_text):
    model, text = models["long"], long_text
    length = len(model.tokenizer.encode(text))
    assert length >= 1024
    visitor.open(model="long", text="a", step=6)
    visitor.asked.clear()
    visitor.type(text)
    visitor.page.locator(".map canvas").wait_for()
    assert f"{length} of 2048" in visitor.page.locator(".context").inner_text()
    reads = [
        read
        for request in visitor.asked
        if request.url.endswith("/api/sites") and json.loads(request.post_data)["text"] == text
        for read in json.loads(request.post_data)["reads"]
    ]
    assert {read["site"] for read in reads} >= {"block.0.head.0.weights", "block.0.hidden"}
    for read in reads:
        assert "rows" in read, read  # never the whole matrix
        assert read["rows"][1] - read["rows"][0] <= (1024 if "columns" in read else 256)
    # A value in the map, and the same value in the grid, matches Python's.
    trace = model.inspect(model.tokenizer.encode(text))
    side = visitor.page.locator(".map canvas").bounding_box()["height"] - 62  # without the labels
    visitor.page.locator(".map canvas").hover(position={"x": 78 + 3, "y": 62 + side * 0.79})
    told = visitor.page.locator(".map .value-label b")
    told.wait_for()
    at = int(0.79 * length)
    around = trace["block.0.head.0.weights"][at - 8 : at + 8, :24]
    shown = {f"{weight:.2f}" for weight in around.flatten().tolist()}
    visitor.expect(lambda: told.inner_text() in shown, True)
    before = visitor.page.evaluate("document.querySelector('.map canvas').toDataURL().length")
    visitor.button("Zoom in").click()
    visitor.settle()
    assert visitor.page.evaluate("document.querySelector('.map canvas').toDataURL().length") != before
