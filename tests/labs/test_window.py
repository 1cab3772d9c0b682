"""Tokens outside the window have no effect."""

import pytest

import clearhead
from clearhead.errors import UserError

PROMPT = "Anna went to the park with her dog."


def test_window_of_eight_tokens_slides_by_one(model):
    result = clearhead.lab("window", model, prompt=PROMPT, tokens=20)
    ids = model.tokenizer.encode(PROMPT)
    steps = result.part("step by step").values
    assert 0 < len(steps) <= 20
    for seen, written in steps:
        assert seen == "".join(model.tokenizer.pieces(ids[-8:])).replace("\n", "⏎")
        ids.append(model.logits(ids[-8:])[-1].argmax().item())
        assert written == model.tokenizer.pieces(ids[-1:])[0].replace("\n", "⏎")
    assert result.findings == {
        "same output from the visible tokens alone": True,
        "steps with tokens outside the window": len(steps),
        "largest change when those are reversed": pytest.approx(0, abs=1e-5),
    }


def test_short_prompts_fill_the_window_first(model):
    result = clearhead.lab("window", model, prompt="Anna", tokens=10)
    steps = result.part("step by step").values
    assert steps[0][0] == "Anna"
    assert steps[1][0] == "Anna" + steps[0][1]
    assert result.findings["steps with tokens outside the window"] == max(0, len(steps) - 5)


def test_the_model_is_unchanged(model):
    whole = model.generate(PROMPT, 20, temperature=0)
    result = clearhead.lab("window", model, prompt=PROMPT, tokens=20)
    assert result.part("generated text").values[1] == [whole.replace("\n", "⏎")]
    assert model.config.n_context == 64


def test_context_beyond_the_limit_and_empty_prompt_are_rejected(model):
    with pytest.raises(UserError, match="this model's context of 64 tokens"):
        clearhead.lab("window", model, context=65)
    with pytest.raises(UserError, match="prompt is empty"):
        clearhead.lab("window", model, prompt="")


def test_king_outside_the_window_is_forgotten(smollm2):
    result = clearhead.lab("window", smollm2, tokens=2)
    (narrow,), (whole,) = result.part("generated text").values
    assert whole.startswith(" Albert")
    assert "Albert" not in narrow
    assert result.findings["same output from the visible tokens alone"]
    (again,), _ = clearhead.lab("window", smollm2, tokens=2, context=22).part("generated text").values
    assert again.startswith(" Albert")
