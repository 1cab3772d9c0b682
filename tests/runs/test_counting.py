"""N-gram models through the same API as any other: train, save, load, evaluate, generate."""

import json
import math
from itertools import islice

import pytest
import torch
from safetensors.torch import load_file, save_file

import clearhead as ch
from clearhead.errors import UserError
from clearhead.formats import folder as model_folder
from clearhead.text.stories import stories


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "stories.txt"
    path.write_text("\n\n".join(story.text for story in islice(stories(0), 300)))
    return path


@pytest.fixture(autouse=True)
def _home(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path_factory.mktemp("home")))


@pytest.fixture
def folder(text, tmp_path):
    ch.train(text, tmp_path / "my", kind="ngram", order=4)
    return tmp_path / "my"


def test_trained_model_equals_loaded_model(text, tmp_path):
    model = ch.train(text, tmp_path / "my", kind="ngram", order=3, tokenizer="word")
    opened = ch.load(tmp_path / "my", "cpu")
    assert opened.config == model.config
    assert opened.config.order == 3
    assert opened.tokenizer.kind == "word"
    assert opened.training["kind"] == "ngram"
    assert torch.equal(opened.logits("The duck was"), model.logits("The duck was"))
    assert "n-grams of up to 3 tokens" in repr(opened)
    assert opened.generate("The duck", tokens=20, seed=1) == model.generate("The duck", tokens=20, seed=1)


def test_higher_order_lowers_bits_per_byte(text):
    bits = [
        ch.train(text, kind="ngram", order=order, tokenizer="byte").evaluate(text).bits_per_byte
        for order in (1, 3, 6)
    ]
    assert bits == sorted(bits, reverse=True)
    assert bits[0] > 4 > 1 > bits[-1]


def test_loss_is_the_mean_surprisal_of_the_logits(text):
    model = ch.train(text, kind="ngram", order=4, tokenizer="char")
    told = text.read_text()[:200]  # fits in one window
    ids = [model.tokenizer.end_id, *model.tokenizer.encode(told), model.tokenizer.end_id]
    surprise = -model.network(torch.tensor(ids[:-1])).gather(1, torch.tensor(ids[1:])[:, None]).double()
    found = model.evaluate(told)
    assert found.loss == pytest.approx(surprise.mean().item(), abs=1e-5)
    assert found.bits_per_byte == pytest.approx(surprise.sum().item() / math.log(2) / len(told), abs=1e-5)


def test_batched_generation_matches_individual_generation(folder):
    model = ch.load(folder, "cpu")
    prompts = ["Once", "The duck was", "He saw a green"]
    together = model.generate(prompts, tokens=30, seed=3, samples=2)
    assert together == [model.generate(prompt, tokens=30, seed=3, samples=2) for prompt in prompts]
    assert len({text for texts in together for text in texts}) == 6


def test_beam_search_is_at_least_as_likely_as_greedy(folder):
    model = ch.load(folder, "cpu")
    best = model.generate("The", tokens=12, beams=4, length_penalty=0.0)
    greedy = model.generate("The", tokens=12, temperature=0.0, log_probabilities=1)
    assert sum(best.log_probabilities) >= sum(greedy.log_probabilities) - 1e-4


def test_unsupported_operations_raise_one_line_errors(folder, tmp_path):
    model = ch.load(folder, "cpu")
    for ask in (
        lambda: model.inspect("The duck"),
        lambda: model.weight("embedding.W"),
        lambda: model.generate("The", inspect=True),
        lambda: model.generate("The", shift=True),
        lambda: model.generate("The", edit={"block.0.head.0.output": 0}),
        lambda: model.export(tmp_path / "my.gguf"),
        lambda: model.export(tmp_path / "my.arpa", to="gguf"),
    ):
        with pytest.raises(UserError) as caught:
            ask()
        assert "\n" not in str(caught.value)
    with pytest.raises(UserError, match=r"no residual stream to inspect.*next token"):
        model.inspect("The duck")


def test_arpa_export_loads_as_a_word_model(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a b b a b a a b " * 50)
    model = ch.train(path, kind="ngram", order=3, tokenizer="char")
    model.export(tmp_path / "my.arpa")
    assert "ngram 3=" in (tmp_path / "my.arpa").read_text()
    with pytest.raises(UserError, match="already exists"):
        model.export(tmp_path / "my.arpa")
    opened = ch.load(tmp_path / "my.arpa", "cpu")
    assert opened.tokenizer.encode("a b x") == [opened.tokenizer.find(word) for word in ("a", "b", "<unk>")]
    ids = model.tokenizer.encode("aba")
    theirs = opened.tokenizer.encode("a b a")
    assert opened.logits(theirs)[-1, theirs[1]].item() == pytest.approx(
        model.logits(ids)[-1, ids[1]].item(), abs=1e-5
    )
    assert opened.generate("a", tokens=5, seed=1)


def test_arpa_file_of_subword_tokens_is_rejected(folder, tmp_path):
    ch.load(folder, "cpu").export(tmp_path / "my.arpa.gz")
    with pytest.raises(UserError, match="tokenizer that it does not contain"):
        ch.load(tmp_path / "my.arpa.gz")


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("orders.1.keys", lambda keys: keys.flip(0), "not sorted"),
        ("orders.1.keys", lambda keys: keys[:-1], "does not match the settings"),
        ("orders.1.keys", lambda keys: keys.double(), "does not match the settings"),
        ("orders.2.log_probability", lambda numbers: numbers * math.nan, "non-finite"),
        ("orders.0.backoff", lambda numbers: None, "bytes, too few|missing"),
    ],
)
def test_tampered_weights_are_rejected(folder, name, change, said):
    tensors = load_file(folder / "model.safetensors")
    changed = change(tensors.pop(name))
    save_file(
        {**tensors, **({} if changed is None else {name: changed.contiguous()})}, folder / "model.safetensors"
    )
    with pytest.raises(UserError, match="not the file that was saved"):
        ch.load(folder)
    (folder / "clearhead.json").unlink()
    with pytest.raises(UserError, match=said):
        ch.load(folder)


def test_config_with_oversized_counts_is_rejected(folder):
    (folder / "clearhead.json").unlink()
    config = json.loads((folder / "config.json").read_text())
    config["config"]["counts"][0] = 2**39
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="too few for the"):
        ch.load(folder)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"kind": "ngram", "order": 0}, "order = 0"),
        ({"kind": "ngram", "steps": 10}, "`steps` does not apply to an n-gram"),
        ({"kind": "ngram", "minutes": 1}, "`minutes` does not apply to an n-gram"),
        ({"kind": "ngram", "accumulation": 2}, "`accumulation` does not apply to an n-gram"),
        ({"kind": "ngram", "deterministic": True}, "`deterministic` does not apply to an n-gram"),
        ({"kind": "ngram", "compiled": False}, "`compiled` does not apply to an n-gram"),
        ({"kind": "ngram", "recipe": "classic"}, "`recipe` does not apply to an n-gram"),
        ({"kind": "ngram", "heads": 2}, "`heads` applies to transformers"),
        ({"kind": "ngram", "resume": True}, "counting, in one pass"),
        ({"order": 3}, "`order` applies only to n-gram models"),
    ],
)
def test_incompatible_settings_are_rejected(text, settings, said):
    with pytest.raises(UserError, match=said):
        ch.train(text, **settings)


def test_trained_model_survives_a_failed_save(text, tmp_path, monkeypatch):
    """As for networks: the model is saved elsewhere and the error says where."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    save = model_folder.save

    def refuse(place, saved):
        if place.name == "model":
            raise UserError(f"no space left in {place}")
        save(place, saved)

    monkeypatch.setattr(model_folder, "save", refuse)
    with pytest.raises(UserError, match=r"no space left in .*model; the model was saved to ") as caught:
        ch.train(text, tmp_path / "model", kind="ngram", order=2)
    [kept] = tmp_path.glob("clearhead-*")
    assert str(kept) in str(caught.value)
    assert ch.load(kept, "cpu").config.order == 2


def test_fine_tuning_is_rejected(text, folder):
    with pytest.raises(UserError, match="cannot be fine-tuned"):
        ch.train(text, start=str(folder), steps=1)
