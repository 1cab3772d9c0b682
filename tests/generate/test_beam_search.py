"""Beam search finds the same texts and scores as transformers on the same small models."""

import itertools
import math

import pytest
import torch
import transformers

from clearhead.errors import UserError
from clearhead.generate.beam_search import BeamSearch
from clearhead.generate.decoder import TransformerDecoder
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.tokenizer import Tokenizer

BYTES = Tokenizer.train("byte", [])


def made(name: str, seed: int, tokenizer: Tokenizer = BYTES, **more) -> LanguageModel:
    torch.manual_seed(seed)
    config = preset(name, n_vocab=tokenizer.n_vocab, n_context=48, n_block=2, n_head=2, d_model=32, **more)
    network = Transformer(config)
    for parameter in network.parameters():
        parameter.data.add_(0.25 * torch.randn_like(parameter))
    return LanguageModel(network, tokenizer)


@pytest.mark.parametrize(("beams", "length_penalty"), [(1, 1.0), (2, 0.0), (2, -1.5), (5, 1.0), (5, 2.0)])
@pytest.mark.parametrize(
    ("name", "n_end"), [("modern", 1), ("gpt2", 3), pytest.param("modern", 12, marks=pytest.mark.slow)]
)
def test_texts_and_scores_match_transformers(name, n_end, length_penalty, beams, tmp_path):
    """Use many end tokens, so that texts end at every length, or a single one that is rarely reached."""
    ended = 0
    for seed in range(3):
        # A random model rarely generates its end token, so some of the most common bytes are end tokens too.
        plain = made(name, seed)
        common = plain.logits("The road").mean(0).topk(n_end - 1).indices.tolist()
        model = LanguageModel(plain.network, Tokenizer(BYTES._inner, BYTES.config, ends=common))
        model.save(tmp_path / f"{seed}")
        theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / f"{seed}")
        ids = torch.tensor([model.tokenizer.encode("The road")])
        expected = theirs.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            num_beams=beams,
            num_return_sequences=beams,
            do_sample=False,
            max_new_tokens=12,
            length_penalty=length_penalty,
            return_dict_in_generate=True,
            output_scores=True,
        )
        if beams == 1:  # transformers then runs plain greedy search
            rows, scores = [expected.sequences[0, ids.shape[1] :].tolist()], None
        else:
            rows = [row[ids.shape[1] :].tolist() for row in expected.sequences]
            scores = expected.sequences_scores.tolist()
        decoder = TransformerDecoder(model.network, beams)
        found = BeamSearch(beams, length_penalty).run(decoder, ids[0].tolist(), model.tokenizer.end_ids, 12)
        assert len(found) == len(rows)
        for beam, row in zip(found, rows, strict=True):
            ours = [token.id for token in beam.tokens]
            if beams > 1 or ours[-1] not in model.tokenizer.end_ids:
                assert ours == row[: len(ours)]
                assert set(row[len(ours) :]) <= {model.tokenizer.end_id}  # padding
            ended += ours[-1] in model.tokenizer.end_ids
        if scores:
            assert [beam.score for beam in found] == pytest.approx(scores, abs=1e-4, rel=1e-6)
            text = model.generate("The road", beams=beams, tokens=12, length_penalty=length_penalty)
            assert text.ids == [token.id for token in found[0].tokens]
            assert text.score == found[0].score
            assert text.finish_reason == ("stop" if text.ids[-1] in model.tokenizer.end_ids else "length")
    assert ended > 0 or n_end == 1


def test_enough_beams_find_the_most_likely_text():
    """Four tokens make few texts of length three, so with enough beams none is missed."""
    model = made("modern", 1, Tokenizer.train("char", ["abc"]))
    start = model.tokenizer.encode("ab")
    totals = {}
    for text in itertools.product(range(4), repeat=3):
        ids = torch.tensor(start + list(text))
        with torch.no_grad():
            told = model.network(ids[None])[0].log_softmax(-1)
        cut = text.index(3) + 1 if 3 in text else 3
        totals[text[:cut]] = sum(told[len(start) - 1 + k, text[k]].item() for k in range(cut))
    text = model.generate("ab", tokens=3, beams=64, length_penalty=0.0)
    best = max(totals, key=totals.__getitem__)
    assert tuple(text.ids) == best
    assert text.score == pytest.approx(totals[best], abs=1e-5)
    assert sum(text.log_probabilities) == pytest.approx(text.score, abs=1e-5)


def test_more_beams_never_lower_the_score():
    worse = 0
    for seed in range(5):
        model = made("modern", seed)
        scores = [model.generate("The", tokens=8, beams=n, length_penalty=0.0).score for n in (1, 30)]
        worse += scores[1] < scores[0] - 1e-5
    assert worse == 0


def test_window_slides_when_the_context_is_full():
    model = made("modern", 0)
    text = model.generate("The " * 11, tokens=10, beams=3)
    assert len(text.ids) == 10
    plain = model.generate("The " * 11, tokens=10, beams=1)
    assert plain == model.generate("The " * 11, tokens=10, temperature=0)


def test_search_stops_at_the_timeout():
    text = made("modern", 0).generate("The", tokens=10**6, beams=2, seconds=0.2)
    assert text.finish_reason == "time"
    assert math.isfinite(text.score)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"beams": 0}, "beams = 0: expected an integer from 1 to"),
        ({"beams": 10**6}, "beams = 1000000"),
        ({"beams": 2.0}, "beams = 2.0"),
        ({"beams": True}, "beams = True"),
        ({"beams": 2, "length_penalty": math.nan}, "length_penalty = nan"),
        ({"beams": 2, "length_penalty": math.inf}, "length_penalty = inf"),
        ({"beams": 2, "length_penalty": "x"}, "length_penalty = 'x'"),
        ({"length_penalty": 1.0}, "`length_penalty` applies to beam search"),
        ({"beams": 2, "temperature": 0.5}, "cannot be combined with `temperature`"),
        ({"beams": 2, "samples": 2}, "cannot be combined with `samples`"),
        ({"beams": 2, "inspect": True}, "cannot be combined with `inspect`"),
        ({"beams": 2, "regex": "a"}, "cannot be combined with `regex`"),
        ({"beams": 2, "tokens": 0}, "tokens = 0"),
        ({"beams": 2, "seconds": -1}, "seconds = -1"),
    ],
    ids=str,
)
def test_invalid_settings_and_combinations_are_rejected(settings, words):
    with pytest.raises(UserError, match=words):
        made("modern", 0).generate("The", **settings)


def test_bidirectional_models_are_rejected():
    with pytest.raises(UserError, match="is bidirectional"):
        made("lecture", 0, causal=False).generate("The", beams=2)
