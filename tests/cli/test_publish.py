"""`clearhead publish`: one command, one folder."""

import json
import shutil

import pytest

from clearhead.page.assets import has_bundles
from clearhead.runs import demo
from clearhead.runs.request import TrainingRequest

pytestmark = pytest.mark.skipif(
    not has_bundles(), reason="the page is not built: run `pip install .` with npm installed"
)
QUICK = ["--head", "0.0", "--no-labs"]


def test_published_folder_matches_the_json_report(clearhead, model_folder, tmp_path):
    result = clearhead(
        "publish", tmp_path / "site", "a cat", "a dog", "--model", model_folder, *QUICK, "--json"
    )
    assert result.code == 0, result.err
    told = json.loads(result.out)
    files = {path.name: path.stat().st_size for path in (tmp_path / "site").iterdir()}
    assert sorted(told["files"]) == sorted(files)
    assert {"index.html", "page.js", "model.bin", "text-0.bin", "text-1.bin"} <= set(files)
    assert told["bytes"] == sum(files.values())
    again = clearhead("publish", tmp_path / "site", "a cat", "--model", model_folder, *QUICK)
    assert "any web host can serve them" in again.out
    assert not (tmp_path / "site" / "text-1.bin").exists()


def test_demo_model_is_the_default(clearhead, model_folder, tmp_path):
    shutil.copytree(model_folder, tmp_path / "runs" / "demo")
    assert clearhead("publish", "site", "a cat", *QUICK).code == 0
    listing = json.loads((tmp_path / "site" / "publication.json").read_text())
    assert listing["details"]["name"] == "demo"


@pytest.mark.slow
def test_demo_model_is_trained_if_missing(clearhead, tmp_path, monkeypatch):
    texts = demo.demo_texts(40)
    small = {"blocks": 1, "width": 16, "heads": 2, "context": 128, "batch": 2}
    monkeypatch.setattr(demo, "demo_texts", lambda: texts)
    monkeypatch.setattr(
        demo, "demo_request", lambda **given: TrainingRequest(steps=2, tokenizer="byte", **small, **given)
    )
    result = clearhead("publish", "site", *QUICK)
    assert result.code == 0, result.err
    assert "training one on the built-in stories for a minute, in runs/demo" in result.err
    assert (tmp_path / "runs" / "demo" / "config.json").is_file()
    listing = json.loads((tmp_path / "site" / "publication.json").read_text())
    assert len(listing["texts"]) == 6


def test_invalid_arguments_are_rejected_before_any_work(refused, model_folder, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    refused("publish", tmp_path / "full", words=["contains other files (notes.txt)"])
    refused("publish", tmp_path / "full" / "notes.txt", words=["is a file"])
    given = ["publish", tmp_path / "site", "a cat", "--model", model_folder]
    refused(*given, "--head", "first", words=["--head first", "such as 3.5"])
    refused(*given, "--head", "9.0", "--no-labs", words=["block"])
    refused("publish", tmp_path / "site", "a cat", "--model", tmp_path / "none", words=["none"])
    refused("publish", words=["OUT"])
