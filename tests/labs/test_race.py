"""A race of seconds: who takes part is judged by the same text, and each as `evaluate` would."""

import pytest

from clearhead.errors import UserError
from clearhead.labs.race import race
from clearhead.language_model import load
from clearhead.runs.request import Request
from clearhead.text.corpus import documents

SHORT = {"minutes": 0.02, "tokenizer": "char", "device": "cpu", "context": 64}


@pytest.fixture(scope="module")
def made(story_file, model_folder, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEARHEAD_HOME", str(tmp_path_factory.mktemp("home")))
        return race(list(documents([story_file])), Request(**SHORT), models=[str(model_folder)], sample=20)


def test_all_take_part_and_the_best_is_first(made, model_folder):
    assert {each.name for each in made.racers} == {"ngram", "lstm", "transformer", str(model_folder)}
    bits = [each.bits_per_byte for each in made.racers]
    assert bits == sorted(bits)
    assert made.racers[0].name == "ngram"  # nobody learns in a second what counting knows
    for each in made.racers:
        assert each.parameters > 100
        assert each.written_a_second > 0
        assert each.sample
        assert (each.learned_a_second is None) == (each.name == str(model_folder))


def test_a_saved_model_is_judged_as_by_evaluate(made, story_text, model_folder):
    [saved] = [each for each in made.racers if each.name == str(model_folder)]
    model = load(model_folder, "cpu")
    end = story_text.encode()[-made.validation_bytes :].decode()
    judged = model.evaluate(end)
    assert saved.bits_per_byte == pytest.approx(judged.bits_per_byte, rel=1e-4)
    assert saved.loss == pytest.approx(judged.loss, rel=1e-4)


def test_positions_add_up_and_an_n_gram_uses_no_far_past(made):
    for each in made.racers:
        places, losses = zip(*each.by_position, strict=True)
        assert places == (1, 2, 3.5, 6.5, 12.5, 24.5, 48.5)
        assert min(losses) < each.bits_per_byte < max(losses)
    [ngram] = [each for each in made.racers if each.name == "ngram"]
    losses = dict(ngram.by_position)
    assert losses[1] > losses[2] > losses[6.5]
    assert abs(losses[48.5] - losses[12.5]) < 0.3 * (losses[1] - losses[12.5])


def test_it_can_be_drawn(made):
    table, lines = made.result().parts
    assert list(lines.lines) == table.rows == [each.name for each in made.racers]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"kinds": ["rnn"]}, "expected one of transformer"),
        ({"kinds": ["lstm", "lstm"]}, "lstm was named twice"),
        ({"kinds": []}, "nobody races"),
        ({"prompt": "щ"}, "щ"),
        ({"prompt": ""}, "the prompt is empty"),
        ({"models": ["nowhere/at/all"]}, "nowhere/at/all"),
    ],
)
def test_mistakes_are_told_before_training(story_file, given, words):
    def follow(name, run):
        raise AssertionError("trained all the same")

    with pytest.raises(UserError, match=words):
        race(list(documents([story_file])), Request(**SHORT), follow=follow, **given)
