"""`clearhead publish`: one command, one folder."""

import json

import pytest

from clearhead.page.assets import has_bundles

pytestmark = pytest.mark.skipif(
    not has_bundles(), reason="the page is not built: run `pip install .` with npm installed"
)
QUICK = ["--head", "0.0", "--no-labs"]


def test_published_folder_matches_the_json_report(clearhead, model_folder, tmp_path):
    texts = ["--text", "a cat", "--text", "a dog"]
    result = clearhead("publish", tmp_path / "site", model_folder, *texts, *QUICK, "--json")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    files = {path.name: path.stat().st_size for path in (tmp_path / "site").iterdir()}
    assert sorted(told["files"]) == sorted(files)
    assert {"index.html", "page.js", "model.bin", "text-0.bin", "text-1.bin"} <= set(files)
    assert told["bytes"] == sum(files.values())
    again = clearhead("publish", tmp_path / "site", model_folder, "--text", "a cat", *QUICK)
    assert "any web host can serve them" in again.out
    assert not (tmp_path / "site" / "text-1.bin").exists()


@pytest.mark.slow
def test_built_in_model_is_the_default(clearhead, tmp_path):
    assert clearhead("publish", "site", *QUICK).code == 0
    listing = json.loads((tmp_path / "site" / "publication.json").read_text())
    assert listing["details"]["name"] == "stories"
    assert len(listing["texts"]) == 6


def test_invalid_arguments_are_rejected_before_any_work(refused, model_folder, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    refused("publish", tmp_path / "full", words=["contains other files (notes.txt)"])
    refused("publish", tmp_path / "full" / "notes.txt", words=["is a file"])
    given = ["publish", tmp_path / "site", model_folder]
    refused(*given, "--head", "first", words=["--head first", "such as 3.5"])
    refused(*given, "--head", "9.0", "--no-labs", words=["block"])
    refused("publish", tmp_path / "site", tmp_path / "none", words=["none"])
    refused("publish", words=["OUT"])
