"""`clearhead chat`: what is typed, what is answered, what is kept."""

import io
import json
import sys

import pytest

from clearhead.language_model import load

TEMPLATE = (
    "{% for m in messages %}{{ m.role }} says {{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}assistant says {% endif %}"
)


@pytest.fixture
def talker(copied_model):
    path = copied_model / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "chat_template": TEMPLATE}))
    return copied_model


@pytest.fixture
def typing(monkeypatch):
    return lambda *lines: monkeypatch.setattr(
        sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines))
    )


def test_a_conversation_is_answered_and_saved(talker, typing, clearhead, tmp_path):
    typing("The cat", "", "/save talk.jsonl", "/reset", "The cat", "/save talk.jsonl", "/quit", "never read")
    result = clearhead("chat", talker, "--tokens", 5, "--device", "cpu")
    assert result.code == 0, result.err
    lines = [json.loads(line)["messages"] for line in (tmp_path / "talk.jsonl").read_text().splitlines()]
    assert [message["role"] for message in lines[0]] == ["user", "assistant"]
    assert lines[0] == lines[1]  # what was forgotten does not matter any more
    model = load(talker, "cpu")
    ids = model.chat_ids([{"role": "user", "content": "The cat"}])
    reply = model.generate(ids, tokens=5, temperature=0.7, top_p=0.9, seed=0)
    assert lines[0][1]["content"] == reply
    assert result.out == f"{reply}\n" * 2


def test_what_cannot_be_done_is_said_and_the_conversation_goes_on(talker, typing, clearhead):
    typing("/save nowhere/talk.jsonl", "/what", "The dog " * 40, "The cat")
    result = clearhead("chat", talker, "--tokens", 3, "--device", "cpu")
    assert result.code == 0, result.err
    assert "nowhere/talk.jsonl cannot be written" in result.err
    assert result.err.count("/reset forgets what was said") == 2  # at the start, and for /what
    assert "/reset to begin anew" in result.err
    assert len(result.out.splitlines()) >= 1


def test_a_model_without_a_template_is_refused_at_once(model_folder, clearhead):
    result = clearhead("chat", model_folder)
    assert result.code == 2
    assert "has no chat template" in result.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--token", "short"), "the token is too easy"),
        (("--token", "x" * 20, "--no-token"), "both --token and --no-token"),
        (("--no-token", "--host", "0.0.0.0"), "served with a token only"),
    ],
)
def test_serve_refuses_a_door_that_is_no_door(options, said, model_folder, clearhead):
    result = clearhead("serve", model_folder, "--port", 0, *options)
    assert result.code == 2
    assert said in result.err
