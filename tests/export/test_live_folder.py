"""Published models: what the page reads before it runs one."""

import json

import pytest
import torch

from clearhead.errors import UserError
from clearhead.export.live_folder import write_live_models
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

HOSTILE = "../</script><img src=x onerror=alert(1)>\u202e"


@pytest.fixture(scope="module")
def make(story_text):
    tokenizer = Tokenizer.train("bpe", [story_text], n_vocab=320)

    def make_model(name, kind="modern"):
        torch.manual_seed(0)
        sizes = {"n_context": 48, "n_block": 2, "n_head": 2, "d_model": 12}
        return LanguageModel(
            Transformer(preset(kind, n_vocab=tokenizer.n_vocab, **sizes)), tokenizer, name=name
        )

    return make_model


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_folder_lists_its_models_with_their_answers(make, tmp_path):
    said = []
    paths = write_live_models([make("one"), make(HOSTILE, "lecture")], tmp_path, "float16", said.append)
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(paths)
    assert said == ["writing one …", f"writing {HOSTILE} …"]
    one, other = read(tmp_path / "live.json")["models"]
    assert (one["folder"], other["folder"]) == ("models/0", "models/1")
    assert (one["details"]["name"], other["details"]["name"]) == ("one", HOSTILE)
    assert one["details"]["config"]["norm"] == "rms"
    assert one["ends"] == [one["details"]["config"]["n_vocab"] - 1]
    answers = read(tmp_path / "models" / "1" / "answers.json")
    assert set(answers) == {"/api/heads", "/api/examples", "/api/opening"}
    assert len(answers["/api/heads"]["kinds"]["previous"]) == 2
    assert answers["/api/opening"]["text"]
    assert answers["/api/examples"]["texts"]
    assert read(tmp_path / "models" / "0" / "weights.json")["numbers"] == "float16"


def test_publishing_fewer_models_removes_the_others(make, tmp_path):
    write_live_models([make("one"), make("two")], tmp_path)
    (tmp_path / "models" / "2").mkdir()  # not ours
    write_live_models([make("one")], tmp_path)
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["0", "2"]


@pytest.mark.parametrize(
    ("names", "message"), [([], "no model to publish"), (["a", "b", "a"], "two models are named 'a'")]
)
def test_names_must_tell_the_models_apart(make, tmp_path, names, message):
    with pytest.raises(UserError, match=message):
        write_live_models([make(name) for name in names], tmp_path)
    assert not list(tmp_path.iterdir())
