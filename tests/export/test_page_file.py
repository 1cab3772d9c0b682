"""The page as one file: the model is inside it if it is small, or else its numbers are."""

import base64
import json
import re
import zlib

import pytest

from clearhead.export import page_file
from tests.serving import make_model, make_registry, running

BODY = {"model": "small", "text": "abcabc", "query": "?model=small&text=abcabc&row=2", "view": "lens"}
PLACE = {"block": 0, "head": 1}


@pytest.fixture(scope="module")
def server():
    registry = make_registry(small=make_model(), other=make_model("gpt2"))
    with running(registry) as made:
        yield made
    registry.close(cancel=True)


def files_in(html):
    found = re.findall(r'data-file="([^"]+)">([^<]*)<', html)
    return {name: base64.b64decode(content) for name, content in found}


def save(server, **changes):
    with server.client() as client:
        response = client.post("/api/page_file", json={**BODY, **PLACE, **changes})
    assert response.status_code == 200, response.text
    assert response.headers["content-disposition"] == "attachment"
    return files_in(response.text)


def test_small_models_are_in_the_file(server):
    files = save(server)
    index = json.loads(files["live.json"])
    assert index["query"] == BODY["query"]
    assert [model["details"]["name"] for model in index["models"]] == ["small"]
    compared = save(server, view="compare", other={"model": "other", "text": "abcabc"})
    models = json.loads(compared["live.json"])["models"]
    assert [model["details"]["name"] for model in models] == ["small", "other"]


def test_file_opens_in_the_language_of_its_author(server):
    with server.client() as client:
        pages = [
            client.post("/api/page_file", json={**BODY, **PLACE, "language": language})
            for language in (None, "de", '"><b>')
        ]
    assert [page.status_code for page in pages] == [200, 200, 400]
    assert ['data-language="de"' in page.text for page in pages] == [False, True, False]


def test_numbers_of_a_large_model_are_in_the_file(server, monkeypatch):
    monkeypatch.setattr(page_file, "MAX_ONE_FILE", 0)
    for view, tabs in (("lens", ["steps", "lens"]), ("change", ["steps"])):
        packed = zlib.decompress(
            save(server, view=view, edits=[{"site": "block.0.input", "scale": 2}])["recording"]
        )
        size = int.from_bytes(packed[:4], "little")
        header = json.loads(packed[4 : 4 + size])
        assert header["views"] == tabs
        assert header["heads"] == [[0, 1]]
        assert header["edits"] == 1
        assert "row=2" in header["query"]


def test_unknown_model_is_rejected(server):
    with server.client() as client:
        response = client.post("/api/page_file", json={**BODY, **PLACE, "model": "none"})
    assert response.status_code == 404
