import itertools
from pathlib import Path

import pytest
import torch

from clearhead.classics.kneser_ney import estimate
from clearhead.classics.ngram import NGram
from clearhead.classics.ngram_counts import count_ngrams
from clearhead.errors import UserError
from clearhead.generate import drafting
from clearhead.generate.decoder import TransformerDecoder
from clearhead.generate.drafting import NGramDrafter, RepetitionDrafter
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.stories import stories
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens

PROMPT = "Once upon a time, a girl named Lily lived near the castle. She had a"


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    return load("stories", "cpu")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "stories.txt"
    path.write_text("\n".join(each.text for each in itertools.islice(stories(1), 200)))
    return path


@pytest.fixture(scope="module")
def ngram(model: LanguageModel, text: Path) -> NGram:
    ids = torch.tensor(model.tokenizer.encode(text.read_text())).numpy()
    return estimate(count_ngrams(Tokens.of(ids), model.config.n_vocab, model.tokenizer.end_id, 5))


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0},
        {"temperature": 1.0, "seed": 3},
        {"top_p": 0.9, "repetition_penalty": 1.1, "log_probabilities": 2},
        {"regex": "( [a-z]+){3,20}[.]"},
        {"stop": "."},
    ],
)
@pytest.mark.parametrize("draft", ["repeats", "text", "model"])
def test_text_equals_that_of_plain_decoding(model, text, ngram, settings, draft):
    """The text also continues beyond the context of 128 tokens, where every token has a forward pass of its own."""
    drafted = {"repeats": "repeats", "text": text, "model": LanguageModel(ngram, model.tokenizer)}[draft]
    settings = {"tokens": 130, "logit_bias": dict.fromkeys(model.tokenizer.end_ids, -100), **settings}
    plain, fast = model.generate(PROMPT, **settings), model.generate(PROMPT, draft=drafted, **settings)
    assert fast == plain
    assert fast.ids == plain.ids
    assert fast.finish_reason == plain.finish_reason
    assert not any(token.drafted for token in plain.sampled)
    if plain.log_probabilities is not None:
        assert fast.log_probabilities == pytest.approx(plain.log_probabilities, abs=1e-4)


def test_a_good_draft_saves_forward_passes(model, text, monkeypatch):
    passes = []
    forward = type(model.network).forward
    monkeypatch.setattr(
        type(model.network), "forward", lambda *given, **more: passes.append(1) or forward(*given, **more)
    )
    fast = model.generate(PROMPT, 40, temperature=0, draft=text)
    n_drafted = sum(token.drafted for token in fast.sampled)
    assert len(fast.sampled) == 40
    assert n_drafted >= 10
    assert len(passes) <= 41 - n_drafted  # the last pass may yield more tokens than are still asked for


def test_repetitions_propose_what_followed_last_time():
    drafter = RepetitionDrafter()
    assert drafter.propose([1, 2, 3], 4) == []
    assert drafter.propose([1, 2, 3, 4, 1, 2], 2) == [3, 4]
    assert drafter.propose([1, 2, 3, 4, 1, 2, 5, 1, 2], 4) == [5, 1, 2]  # the latest occurrence
    assert drafter.propose([1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 1, 2], 4) == [5, 1, 2, 3]


def test_ngrams_propose_a_probable_token_that_followed_in_the_text(model, text, ngram):
    ids, proposed, best = model.tokenizer.encode(text.read_text()), 0, 0
    known = {tuple(ids[i : i + 2]) for i in range(len(ids) - 1)}
    for end in range(4, 200):
        if found := NGramDrafter(ngram).propose(ids[:end], 1):
            logits = ngram(torch.tensor([ids[end - 4 : end]]))[0, -1]
            assert logits[found[0]].exp() >= 0.3 - 1e-6
            assert (ids[end - 1], found[0]) in known
            best += int(logits.argmax()) == found[0]
            proposed += 1
    assert proposed > 100
    assert (
        best > 0.9 * proposed
    )  # elsewhere, shorter contexts favor a token that never followed the longest one


def test_rewound_decoder_continues_as_if_nothing_had_been_processed(model):
    ids = torch.tensor([model.tokenizer.encode(PROMPT)])
    decoder = TransformerDecoder(model.network)
    decoder.prefill(ids[:, :6])
    decoder.check(torch.tensor([[7, 8, 9]]))
    decoder.rewind(3)
    assert torch.allclose(decoder.check(ids[:, 6:])[-1], model.logits(ids[0].tolist())[-1], atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"draft": "missing.txt"}, "no such file"),
        ({"draft": ""}, "no such file"),
        ({"draft": "."}, "a folder"),
        ({"draft": "Once upon a time " * 400}, r"time Once upon…': no such file"),
        ({"draft": 3}, "expected 'repeats'"),
        ({"draft": "repeats", "samples": 2}, "omit `samples`"),
        ({"draft": "repeats", "edit": {"block.0.attention": 0}}, "omit draft"),
        ({"draft": "repeats", "inspect": True}, "omit draft"),
        ({"draft": "repeats", "beams": 2}, "beam search cannot be combined"),
    ],
)
def test_what_cannot_be_drafted_says_so(model, settings, message):
    with pytest.raises(UserError, match=message):
        model.generate(PROMPT, 4, **settings)


def test_a_text_is_counted_again_only_if_it_has_changed(model, text, tmp_path, monkeypatch):
    counted = []
    count = drafting._count
    monkeypatch.setattr(drafting, "_count", lambda *given: counted.append(1) or count(*given))
    path = tmp_path / "stories.txt"
    path.write_text(text.read_text())
    first, second = (model.generate(PROMPT, 20, temperature=0, draft=path) for _ in range(2))
    assert [token.drafted for token in first.sampled] == [token.drafted for token in second.sampled]
    assert any(token.drafted for token in first.sampled)
    path.write_text("Words of another language.\n")
    changed = model.generate(PROMPT, 20, temperature=0, draft=path)
    assert changed == first
    assert not any(token.drafted for token in changed.sampled)
    assert len(counted) == 2


def test_a_context_that_shifts_cannot_be_drafted():
    config = preset("modern", n_vocab=257, n_context=16, d_model=16, n_head=2, n_block=1)
    rotary = LanguageModel(Transformer(config), Tokenizer.train("byte", []))
    with pytest.raises(UserError, match="`draft` and `shift` cannot be combined"):
        rotary.generate("a", 4, draft="repeats", shift=True)


def test_only_transformers_are_drafted_for(model, ngram):
    counts = LanguageModel(ngram, model.tokenizer)
    with pytest.raises(UserError, match="requires a transformer, not a model of kind ngram"):
        counts.generate(PROMPT, 4, draft="repeats")


def test_only_n_gram_models_draft(model):
    with pytest.raises(UserError, match="is of kind transformer: `draft` expects an n-gram model"):
        model.generate(PROMPT, 4, draft=model)


def test_drafting_model_shares_the_tokenizer(model, ngram):
    other = LanguageModel(ngram, Tokenizer.train("byte", []))
    with pytest.raises(UserError, match="different tokenizer"):
        model.generate(PROMPT, 4, draft=other)
