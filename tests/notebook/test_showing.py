"""Widgets without a notebook around them: what they open with, and what they answer."""

import asyncio
import json
import re
import sys
from urllib.parse import parse_qs

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.notebook.built import is_built
from tests.serving import make_model

pytest.importorskip("anywidget", reason="there is no anywidget: pip install '.[dev]'")
if not is_built():
    pytest.skip("the page was not built: pip install . builds it, with npm", allow_module_level=True)


@pytest.fixture(scope="module")
def model():
    return make_model(n_block=2)


def listen(widget, monkeypatch):
    """What it sends."""
    sent = []
    monkeypatch.setattr(type(widget), "send", lambda _, content, buffers: sent.append((content, *buffers)))
    return sent


def opened(widget):
    return [({name: value for name, [value] in parse_qs(each["query"][1:]).items()}, each) for each in widget.openings]


def test_a_trace_opens_with_its_text(model):
    trace = model.inspect("a </b> duck").edit({"final": 0})
    [(place, opening)] = opened(clearhead.show(trace, block=-1, head=1, step=3, height=500))
    assert place == {"model": "model", "text": "a </b> duck", "block": "1", "head": "1", "step": "3"}
    assert (opening["ids"], opening["edits"]) == (trace.ids[0].tolist(), 1)


def test_a_model_opens_with_an_example_or_a_text(model):
    [(place, opening)] = opened(clearhead.show(model))
    assert ("text" in place, opening["ids"]) == (False, None)
    [(place, _)] = opened(clearhead.show(model, text="Once"))
    assert place["text"] == "Once"


def test_two_that_were_compared_stand_below_each_other(model):
    one, other = model.inspect("a duck"), model.inspect("a hen")
    same = clearhead.show(one.compare(other))
    assert [(place["model"], place["text"]) for place, _ in opened(same)] == [("model", "a duck"), ("model", "a hen")]
    elsewhere = make_model(n_block=2).inspect("a hen")
    two = clearhead.show(one.compare(elsewhere))
    assert [place["model"] for place, _ in opened(two)] == ["one", "other"]


def test_messages_are_answered(model, monkeypatch):
    trace = model.inspect("a duck")
    widget = clearhead.show(trace)
    sent = listen(widget, monkeypatch)
    reads = [{"site": "block.0.head.0.weights"}]
    body = json.dumps({"model": "model", "text": trace.ids[0].tolist(), "reads": reads})
    question = {"id": "x 0", "method": "POST", "path": "/api/sites", "body": body}
    widget._handle_custom_msg(question, [])
    [(content, numbers)] = sent
    assert (content["id"], content["status"], content["headers"]["x-shape"]) == ("x 0", 200, "6,6")
    assert numbers == trace["block.0.head.0.weights"].numpy().tobytes()
    widget._handle_custom_msg({"id": "x 0", "leave": True}, [])  # too late: nothing is said
    widget._handle_custom_msg({**question, "path": "/metrics"}, [])  # not the page's
    assert len(sent) == 1


def test_where_a_loop_runs_it_is_not_kept_waiting(model, monkeypatch):
    widget = clearhead.show(model)
    sent = listen(widget, monkeypatch)

    async def ask():
        for k in range(3):
            question = {"id": f"x {k}", "method": "GET", "path": "/api/models", "body": None}
            widget._handle_custom_msg(question, [])
        assert not sent
        while len(sent) < 3:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(ask(), 30))
    assert {content["id"] for content, _ in sent} == {"x 0", "x 1", "x 2"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"block": 2}, "block 2"),
        ({"head": 9}, "head 9"),
        ({"height": 3}, "height = 3: expected pixels, 200 or more"),
        ({"height": "tall"}, "height = 'tall': expected pixels"),
        ({"text": "b"}, "text goes with a model"),
    ],
)
def test_what_is_refused(model, settings, said):
    with pytest.raises(UserError, match=re.escape(said)):
        clearhead.show(model.inspect("a"), **settings)


def test_other_things_are_refused(model, monkeypatch):
    with pytest.raises(UserError, match="show a str: expected a trace, two compared ones, or a model"):
        clearhead.show("a")
    with pytest.raises(UserError, match="asked of one text"):
        clearhead.show(model.inspect(["a", "b"]))
    monkeypatch.delitem(sys.modules, "clearhead.notebook.widget", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(UserError, match=re.escape("pip install 'clearhead[notebook]'")):
        clearhead.show(model)
