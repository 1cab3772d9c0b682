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
    labels = [f"w{i} … w{i + 7} → w{i + 8}" for i in range(1, len(steps) + 1)]
    assert result.part("step by step").rows == labels
    assert labels[0] == "w1 … w8 → w9"
    assert result.findings == {
        "same output from the visible tokens alone": True,
        "steps with tokens outside the window": len(steps),
        "largest change in log-probability with the tokens outside reversed": pytest.approx(0, abs=1e-5),
        "model": model.name,
    }


def test_short_prompts_fill_the_window_first(model):
    result = clearhead.lab("window", model, prompt="Anna", tokens=10)
    steps = result.part("step by step").values
    assert steps[0][0] == "Anna"
    assert steps[1][0] == "Anna" + steps[0][1]
    n = len(model.tokenizer.encode("Anna"))
    rows = result.part("step by step").rows
    assert rows[:2] == [f"w1 … w{n} → w{n + 1}", f"w1 … w{n + 1} → w{n + 2}"]
    assert rows[8 - n : 10 - n] == ["w1 … w8 → w9", "w2 … w9 → w10"]
    assert result.findings["steps with tokens outside the window"] == max(0, len(steps) - 5)


def test_a_window_of_one_token_names_it_once(model):
    result = clearhead.lab("window", model, prompt=PROMPT, context=1, tokens=2)
    assert result.part("step by step").rows == ["w1 → w2", "w2 → w3"]


def test_the_model_is_unchanged(model):
    whole = model.generate(PROMPT, 20, temperature=0)
    result = clearhead.lab("window", model, prompt=PROMPT, tokens=20)
    assert result.part("generated text").values[1] == [whole.replace("\n", "⏎")]
    assert model.config.n_context == 64


def test_context_beyond_the_limit_and_empty_prompt_are_rejected(model):
    with pytest.raises(UserError, match="this model's context of 64 tokens"):
        clearhead.lab("window", model, context=65)
    with pytest.raises(UserError, match="`prompt` is empty"):
        clearhead.lab("window", model, prompt="")


def test_trumpet_lost_outside_the_window_is_forgotten():
    result = clearhead.lab("window", tokens=2)
    (narrow,), (whole,) = result.part("generated text").values
    assert whole.startswith(" trumpet")
    assert "trumpet" not in narrow
    assert result.findings["same output from the visible tokens alone"]
    (again,), _ = clearhead.lab("window", tokens=2, context=16).part("generated text").values
    assert again.startswith(" trumpet")


def test_king_outside_the_window_is_forgotten(smollm2):
    king = "Once there was a king named Albert. He was old and tired, and the people of the land loved King"
    result = clearhead.lab("window", smollm2, prompt=king, tokens=2)
    (narrow,), (whole,) = result.part("generated text").values
    assert whole.startswith(" Albert")
    assert "Albert" not in narrow
    (again,), _ = (
        clearhead.lab("window", smollm2, prompt=king, tokens=2, context=22).part("generated text").values
    )
    assert again.startswith(" Albert")
