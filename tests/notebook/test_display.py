"""Widgets without a notebook: their initial view and the requests they answer."""

import asyncio
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import parse_qs

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.page.assets import has_bundles
from tests import event_loop
from tests.serving import make_model

pytest.importorskip("anywidget", reason="anywidget is not installed: pip install '.[dev]'")
if not has_bundles():
    pytest.skip("the page is not built: run `pip install .` with npm installed", allow_module_level=True)


@pytest.fixture(scope="module")
def model():
    return make_model(n_block=2)


def run_in_thread(work):
    """Run a function in a separate thread, because the browser's event loop runs in this one."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(work).result(60)


def listen(widget, monkeypatch):
    """Collect the messages that the widget sends."""
    sent = []
    monkeypatch.setattr(type(widget), "send", lambda _, content, buffers: sent.append((content, *buffers)))
    return sent


def opened(widget):
    return {name: value for name, [value] in parse_qs(widget.opening["query"][1:]).items()}


def test_show_trace(model):
    trace = model.inspect("a </b> duck").edit({"final": 0})
    widget = clearhead.show(trace, block=-1, head=1, step="softmax", height=500)
    wanted = {"model": "model", "text": "a </b> duck", "block": "1", "head": "1", "step": "softmax"}
    assert opened(widget) == wanted
    assert (widget.opening["ids"], widget.opening["edits"]) == (trace.ids[0].tolist(), 1)


def test_show_model(model):
    widget = clearhead.show(model)
    assert ("text" in opened(widget), widget.opening["ids"]) == (False, None)
    assert opened(clearhead.show(model, text="Once"))["text"] == "Once"


def test_model_is_named_after_its_folder(model, tmp_path):
    model.save(tmp_path / "ducks")
    loaded = clearhead.load(tmp_path / "ducks")
    trace = loaded.inspect("a duck")
    for what in (loaded, trace, trace.edit({"final": 0}), trace.compare(loaded.inspect("a hen"))):
        assert opened(clearhead.show(what))["model"] == "ducks"
    _, written = loaded.generate("a", tokens=3, inspect=True)
    assert opened(clearhead.show(written))["model"] == "ducks"
    place = opened(clearhead.show(trace.compare(model.inspect("a hen"))))
    assert (place["model"], place["otherModel"]) == ("ducks", "model")


def test_show_comparison(model):
    one, other = model.inspect("a duck"), model.inspect("a hen")
    place = opened(clearhead.show(one.compare(other)))
    assert (place["view"], place["text"], place["other"]) == ("compare", "a duck", "a hen")
    assert "otherModel" not in place
    another, changed = make_model(n_block=2).inspect("a hen"), one.edit({"final": 0})
    for beside, name in ((another, "model (2)"), (changed, "model (1 edit)")):
        place = opened(clearhead.show(one.compare(beside)))
        assert (place["model"], place["otherModel"]) == ("model", name)


def test_comparing_two_traces_of_the_same_text(model, monkeypatch):
    one = model.inspect("a duck")
    widget = clearhead.show(one.edit({"block.0.head.0.weights": 0.25}).compare(one))
    sent = listen(widget, monkeypatch)
    for name in ("model (1 edit)", "model"):
        reads = [{"site": "block.0.head.0.weights"}]
        body = json.dumps({"model": name, "text": one.ids[0].tolist(), "reads": reads})
        question = {"id": name, "method": "POST", "path": "/api/sites", "body": body}
        run_in_thread(partial(widget._handle_custom_msg, question, []))
    [(_, edited), (_, plain)] = sent
    assert set(memoryview(edited).cast("f")) == {0.25}
    assert plain == one["block.0.head.0.weights"].numpy().tobytes()


def test_requests_are_answered(model, monkeypatch):
    trace = model.inspect("a duck")
    widget = clearhead.show(trace)
    sent = listen(widget, monkeypatch)
    reads = [{"site": "block.0.head.0.weights"}]
    body = json.dumps({"model": "model", "text": trace.ids[0].tolist(), "reads": reads})
    question = {"id": "x 0", "method": "POST", "path": "/api/sites", "body": body}
    run_in_thread(lambda: widget._handle_custom_msg(question, []))
    [(content, numbers)] = sent
    assert (content["id"], content["status"], content["headers"]["x-shape"]) == ("x 0", 200, "6,6")
    assert numbers == trace["block.0.head.0.weights"].numpy().tobytes()
    widget._handle_custom_msg({"id": "x 0", "leave": True}, [])  # too late to cancel
    widget._handle_custom_msg({**question, "path": "/metrics"}, [])  # not a route that the page uses
    assert len(sent) == 1


def test_running_event_loop_is_not_blocked(model, monkeypatch):
    widget = clearhead.show(model)
    sent = listen(widget, monkeypatch)

    async def ask():
        for k in range(3):
            question = {"id": f"x {k}", "method": "GET", "path": "/api/models", "body": None}
            widget._handle_custom_msg(question, [])
        assert not sent
        while len(sent) < 3:
            await asyncio.sleep(0.01)

    event_loop.run(asyncio.wait_for(ask(), 60))
    assert {content["id"] for content, _ in sent} == {"x 0", "x 1", "x 2"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step": "sotfmax"}, "step = 'sotfmax': expected one of project,"),
        ({"step": 99}, "step 99 does not exist"),
        ({"block": 2}, "block 2"),
        ({"head": 9}, "head 9"),
        ({"height": 3}, "height = 3: expected 200 pixels or more"),
        ({"height": "tall"}, "height = 'tall': expected 200 pixels or more"),
        ({"text": "b"}, "text is only accepted with a model"),
    ],
)
def test_show_errors(model, settings, message):
    with pytest.raises(UserError, match=re.escape(message)):
        clearhead.show(model.inspect("a"), **settings)


def test_show_rejects_other_types(model, monkeypatch):
    with pytest.raises(UserError, match="cannot show a str: expected a trace, a comparison or a model"):
        clearhead.show("a")
    with pytest.raises(UserError, match="needs a trace of one text"):
        clearhead.show(model.inspect(["a", "b"]))
    monkeypatch.delitem(sys.modules, "clearhead.notebook.widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(UserError, match=re.escape("pip install 'clearhead[notebook]'")):
        clearhead.show(model)
