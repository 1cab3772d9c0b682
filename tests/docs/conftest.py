"""Where the pages' code is run: a folder with a text, a run of it, and what else a reader would have."""

import io
import json
import shutil
import sys
import warnings
from functools import wraps

import pytest

import clearhead
from clearhead.labs.lab import Lab
from clearhead.language_model import LanguageModel, load
from clearhead.runs.request import TrainingRequest

# How the code is made short. It is run as it stands, but for these numbers.
STEPS, SIZES = 2, {"blocks": 2, "heads": 2, "width": 32, "context": 128, "vocab": 384}
MOST_TOKENS = 6
LAB = {"steps": 2, "seeds": 1, "stories": 500, "epochs": 1, "longest": 8, "widest": 16, "tokens": 2}
RACE = 0.01  # minutes

TALK = [{"role": "user", "content": "Who ran?"}, {"role": "assistant", "content": "The cat ran home."}]
TEMPLATE = "{% for m in messages %}{% if m.role == 'assistant' %}A {% endif %}{{ m.content }} {% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}A {% endif %}"
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
# Words that the pages ask for and the stories lack.
MORE = "The king saw a man and a woman. The cat saw the dog. Once upon a time it was red.\n\n"


@pytest.fixture(scope="session")
def prepared(story_text, tmp_path_factory):
    """The folder, made once: my.txt, other.txt, talks.jsonl, person.json, runs/my, smollm2/ and model.gguf.

    What is called smollm2 here is a small model with a chat template: tests/parity has the real one.
    """
    folder = tmp_path_factory.mktemp("reader")
    text = story_text[:30_000] + MORE * 20
    (folder / "my.txt").write_text(text, encoding="utf-8")
    (folder / "other.txt").write_text(story_text[30_000:34_000], encoding="utf-8")
    (folder / "talks.jsonl").write_text(f"{json.dumps({'messages': TALK})}\n" * 20, encoding="utf-8")
    (folder / "person.json").write_text(json.dumps(SCHEMA))
    settings = {**SIZES, "steps": 4, "tokenizer": "bpe", "device": "cpu"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the text is short
        model = clearhead.train(folder / "my.txt", out=folder / "runs" / "my", snapshots=2, **settings)
    model.save(folder / "smollm2")
    settings = folder / "smollm2" / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "chat_template": TEMPLATE}))
    load(folder / "runs" / "my", "cpu").export(folder / "model.gguf")
    return folder


@pytest.fixture
def workplace(prepared, tmp_path, monkeypatch):
    """A copy of that folder, to be in."""
    shutil.copytree(prepared, tmp_path / "reader")
    monkeypatch.chdir(tmp_path / "reader")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Hello\n/quit\n")))
    return tmp_path / "reader"


@pytest.fixture
def brief(monkeypatch):
    """Two steps in place of minutes, small networks, a few tokens, small labs."""
    ask, settle = TrainingRequest.__init__, Lab.check

    def small(self, **settings):
        # A race is so short that its plan is small by itself.
        if settings.get("kind") != "ngram" and settings.get("minutes") != RACE:
            settings.update(minutes=None, steps=STEPS)
            shaped = settings.get("start") is not None
            recurrent = settings.get("kind", "transformer") != "transformer"
            for name, size in SIZES.items():
                alike = name == "vocab" and settings.get("tokenizer") in ("char", "byte")
                without = alike or (shaped and name != "context") or (recurrent and name == "heads")
                if settings.get(name) is None and not without:
                    settings[name] = size
        ask(self, **settings)

    def short(write):
        @wraps(write)
        def write_little(self, prompt=None, tokens=MOST_TOKENS, **settings):
            return write(self, prompt, min(tokens, MOST_TOKENS), **settings)

        return write_little

    monkeypatch.setattr(TrainingRequest, "__init__", small)
    monkeypatch.setattr(
        Lab, "check", lambda lab, given: {n: LAB.get(n, v) for n, v in settle(lab, given).items()}
    )
    for name in ("generate", "stream", "request"):
        monkeypatch.setattr(LanguageModel, name, short(getattr(LanguageModel, name)))
