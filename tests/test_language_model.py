"""A language model: text in, text out."""

import math

import pytest
import torch

from clearhead.errors import UserError
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.corpus import Document


def test_it_says_what_it_is(model):
    shown = repr(model)
    assert f"{model.config.n_parameter:,} parameters: 1 blocks of 1 heads, width 32, context 64" in shown
    assert f"char tokenizer of {model.tokenizer.n_vocab}" in shown


def test_logits_are_those_of_the_network(model):
    text = "Anna had a kite."
    logits = model.logits(text)
    assert logits.shape == (len(text), model.config.n_vocab)
    with torch.no_grad():
        expected = model.network(torch.tensor([model.tokenizer.encode(text)]))[0]
    assert torch.equal(logits, expected)


def test_what_was_saved_is_what_is_loaded(model, trained, tmp_path):
    assert torch.equal(model.logits("Anna"), trained.model.logits("Anna"))
    assert model.training == trained.model.training
    model.save(tmp_path / "again")
    assert torch.equal(load(tmp_path / "again").logits("Anna"), model.logits("Anna"))


def test_a_model_is_overwritten_only_when_told(model, tmp_path):
    model.save(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with torch.no_grad():
        model.network.embedding.weight += 1
    with pytest.raises(UserError, match="already holds a model"):
        model.save(tmp_path / "model")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    model.save(str(tmp_path / "model"), overwrite=True)
    assert torch.equal(load(tmp_path / "model").logits("Anna"), model.logits("Anna"))


def test_the_same_seed_gives_the_same_text(model):
    one = model.generate("The", tokens=30, seed=5)
    assert one == model.generate("The", tokens=30, seed=5)
    assert one != model.generate("The", tokens=30, seed=6)
    assert one == "".join(model.stream("The", tokens=30, seed=5))
    first, second = model.generate("The", tokens=30, seed=5, samples=2)
    assert first == one != second


PROMPTS = ["The", "Anna had a kite. " * 5, "A", "Once upon a time there was"]


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_a_list_of_prompts_gives_what_each_alone_gives(model, temperature):
    settings = {"tokens": 40, "temperature": temperature, "seed": 3, "stop": "zq"}
    alone = [model.generate(prompt, **settings) for prompt in PROMPTS]
    assert model.generate(PROMPTS, **settings) == alone
    assert model.generate(tuple(PROMPTS[:1]), **settings) == alone[:1]
    ids = [model.tokenizer.encode(prompt) for prompt in PROMPTS]
    assert model.generate(ids, **settings) == alone
    twice = [model.generate(prompt, samples=2, **settings) for prompt in PROMPTS]
    assert model.generate(PROMPTS, samples=2, **settings) == twice


def test_more_prompts_than_slots(model):
    texts = model.generate(["The"] * 40 + ["Anna"], tokens=3, seed=1)
    assert len(texts) == 41
    assert set(texts[:40]) == {model.generate("The", tokens=3, seed=1)}


def test_an_engine_gives_what_generate_gives(model):
    with model.engine(slots=2, queue=10) as engine:
        tickets = [engine.submit(model.request(prompt, tokens=20, seed=2, top_k=5)) for prompt in PROMPTS]
        texts = [ticket.texts() for ticket in tickets]
    assert texts == [[model.generate(prompt, tokens=20, seed=2, top_k=5)] for prompt in PROMPTS]


@pytest.mark.parametrize(
    ("prompts", "settings", "message"),
    [
        ([], {}, "the prompt is a list: expected a str"),
        (["The", ""], {}, "the prompt is empty"),
        (["The", 3], {}, "the prompt is a int: expected a str"),
        (["The"], {"inspect": True}, "inspect goes with one prompt"),
        (["The"], {"edit": {"block.0.hidden": 0}}, "edit goes with one prompt"),
        (["The"], {"tokens": 0}, "tokens = 0"),
        (["The"], {"seed": -1}, "seed = -1"),
        (["The"], {"samples": 0}, "samples = 0"),
        (["The"], {"temperature": -1}, "temperature = -1"),
        ([[0], [99999]], {}, "id 99999 does not exist"),
    ],
)
def test_prompts_that_cannot_be_served_are_refused(model, prompts, settings, message):
    with pytest.raises(UserError, match=message):
        model.generate(prompts, **settings)


def test_without_chance_it_takes_the_likeliest(model):
    text = "The"
    for _ in range(10):
        text += model.tokenizer.decode([int(model.logits(text)[-1].argmax())])
    assert model.generate("The", tokens=10, temperature=0) == text.removeprefix("The")


def test_it_writes_beyond_its_context(model):
    prompt = "Anna had a kite. " * 10
    assert len(prompt) > model.config.n_context
    text = model.generate(prompt, tokens=5, temperature=0)
    seen = model.tokenizer.encode(prompt)[-model.config.n_context :]
    with torch.no_grad():
        likeliest = int(model.network(torch.tensor([seen]))[0, -1].argmax())
    assert text.startswith(model.tokenizer.decode([likeliest]))


def test_it_stops_before_a_stop_string(model):
    text = model.generate("The", tokens=60, seed=1)
    stop = text[20:23]
    assert model.generate("The", tokens=60, seed=1, stop=stop) == text[: text.index(stop)]
    assert model.generate("The", tokens=60, seed=1, stop=["§", stop]) == text[: text.index(stop)]


def test_evaluation_counts_each_token_once(model):
    text = "Anna had a kite. " * 9
    evaluation = model.evaluate(text)
    assert (evaluation.tokens, evaluation.bytes) == (len(text) + 1, len(text))
    assert evaluation.perplexity == math.exp(evaluation.loss)
    assert evaluation.bits_per_byte == pytest.approx(evaluation.loss / math.log(2) * (1 + 1 / len(text)))
    assert model.evaluate([Document.of("a", text)]) == evaluation
    assert model.evaluate(text, batch_size=1).loss == pytest.approx(evaluation.loss, rel=1e-6)
    assert evaluation.loss < math.log(model.config.n_vocab), "worse than guessing"


def test_evaluation_leaves_the_model_as_it_was(model):
    model.network.train()
    model.evaluate("Anna had a kite.")
    assert model.network.training


def test_a_text_is_inspected(model):
    text = "The chicken"
    trace = model.inspect(text)
    assert trace.tokens == list(text)
    assert torch.equal(trace.logits, model.logits(text))
    weights = trace.block[0].head[0].weights
    assert weights.shape == (len(text), len(text))
    assert torch.equal(weights, weights.tril())
    assert trace.verify() < 1e-5
    with pytest.raises(UserError, match="blocks 0 to 0"):
        trace["block.1.input"]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda model: model.logits(""), "the text is empty"),
        (lambda model: model.inspect(""), "the text is empty"),
        (lambda model: model.inspect([]), "expected a str, ids, or a list of texts"),
        (lambda model: model.inspect("a", padding="middle"), "expected left or right"),
        (lambda model: model.generate(""), "the prompt is empty"),
        (lambda model: model.stream(""), "the prompt is empty"),
        (lambda model: model.evaluate(""), "the text is empty"),
        (lambda model: model.logits("Ω"), "GREEK CAPITAL LETTER OMEGA"),
        (lambda model: model.logits("a" * 65), "65 tokens are more than the context of 64"),
        (lambda model: model.generate("a", tokens=0), "tokens = 0"),
        (lambda model: model.generate("a", seed=-1), "seed = -1"),
        (lambda model: model.generate("a", seed=2**32), "seed = 4294967296"),
        (lambda model: model.generate("a", samples=0), "samples = 0"),
        (lambda model: model.stream("a", temperature=-1), "temperature = -1"),
    ],
)
def test_what_it_cannot_do_is_said_when_asked(ask, words, model):
    with pytest.raises(UserError, match=words):
        ask(model)


def test_a_model_that_sees_both_ways_does_not_write(trained):
    config = preset("lecture", n_vocab=99, n_context=8, n_block=1, n_head=1, d_model=8, causal=False)
    both = LanguageModel(Transformer(config), trained.tokenizer)
    assert both.logits("Anna").shape == (4, 99)
    with pytest.raises(UserError, match="sees both ways"):
        both.generate("Anna")
