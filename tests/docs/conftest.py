"""Environment for the code in the docs: a text, a run trained on it, and the reader's other files."""

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

# Limits that keep the code fast. Everything else runs as printed.
STEPS, SIZES = 2, {"blocks": 2, "heads": 2, "width": 32, "context": 128, "vocab": 384}
MAX_TOKENS = 6
LAB_SETTINGS = {"steps": 2, "seeds": 1, "stories": 500, "epochs": 1, "longest": 8, "widest": 16, "tokens": 2}
RACE_MINUTES = 0.01

CONVERSATION = [
    {"role": "user", "content": "Who ran?"},
    {"role": "assistant", "content": "The cat ran home."},
]
TEMPLATE = "{% for m in messages %}{% if m.role == 'assistant' %}A {% endif %}{{ m.content }} {% endfor %}"
TEMPLATE += "{% if add_generation_prompt %}A {% endif %}"
SCHEMA = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
# Words that the pages use but the stories do not contain.
EXTRA_TEXT = "The king saw a man and a woman. The cat saw the dog. Once upon a time it was red.\n\n"


@pytest.fixture(scope="session")
def prepared(story_text, tmp_path_factory):
    """Create my.txt, other.txt, talks.jsonl, person.json, students.txt, runs/my, smollm2/, model.gguf, and items to
    score in a folder.

    Here, smollm2 is a small model with a chat template; tests/parity uses the real one.
    """
    folder = tmp_path_factory.mktemp("reader")
    text = story_text[:30_000] + EXTRA_TEXT * 20
    (folder / "my.txt").write_text(text, encoding="utf-8")
    (folder / "other.txt").write_text(story_text[30_000:34_000], encoding="utf-8")
    (folder / "talks.jsonl").write_text(f"{json.dumps({'messages': CONVERSATION})}\n" * 20, encoding="utf-8")
    (folder / "person.json").write_text(json.dumps(SCHEMA))
    (folder / "students.txt").write_text("anna\nben\n")
    (folder / "pairs.jsonl").write_text('{"good": "The cat ran.", "bad": "The cat run."}\n')
    (folder / "questions.csv").write_text("context,choice_0,choice_1,answer\nThe cat,ran home.,blue,0\n")
    (folder / "questions.jsonl").write_text(
        '{"context": "The cat", "choices": ["ran", "blue"], "answer": 0}\n'
    )
    (folder / "blimp.jsonl").write_text(
        '{"sentence_good": "He ran.", "sentence_bad": "Him ran.", "UID": "case"}\n'
    )
    settings = {**SIZES, "steps": 4, "tokenizer": "bpe", "device": "cpu"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the text is short enough to trigger a warning
        model = clearhead.train(folder / "my.txt", out=folder / "runs" / "my", snapshots=2, **settings)
    model.save(folder / "smollm2")
    (folder / "smollm2" / "clearhead.json").unlink()  # it has a hash of the file changed here
    settings = folder / "smollm2" / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "chat_template": TEMPLATE}))
    load(folder / "runs" / "my", "cpu").export(folder / "model.gguf")
    return folder


@pytest.fixture
def workplace(prepared, tmp_path, monkeypatch):
    """Change into a copy of the prepared folder."""
    shutil.copytree(prepared, tmp_path / "reader")
    monkeypatch.chdir(tmp_path / "reader")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"Hello\n/quit\n")))
    return tmp_path / "reader"


@pytest.fixture
def brief(monkeypatch):
    """Limit training to two steps, and use small networks, few tokens and small labs."""
    make_request, check_settings = TrainingRequest.__init__, Lab.check

    def make_small_request(self, **settings):
        # A race this short already plans a small model.
        if settings.get("kind") != "ngram" and settings.get("minutes") != RACE_MINUTES:
            settings.update(minutes=None, steps=STEPS)
            has_shape = settings.get("start") is not None
            recurrent = settings.get("kind", "transformer") != "transformer"
            for name, size in SIZES.items():
                without_vocab = settings.get("tokenizer") in ("char", "byte") or settings.get("from_teachers")
                fixed_vocab = name == "vocab" and without_vocab
                inapplicable = (
                    fixed_vocab or (has_shape and name != "context") or (recurrent and name == "heads")
                )
                if settings.get(name) is None and not inapplicable:
                    settings[name] = size
        make_request(self, **settings)

    def limit_tokens(generate):
        @wraps(generate)
        def generate_few(self, prompt=None, tokens=MAX_TOKENS, **settings):
            return generate(self, prompt, min(tokens, MAX_TOKENS), **settings)

        return generate_few

    monkeypatch.setattr(TrainingRequest, "__init__", make_small_request)
    monkeypatch.setattr(
        Lab,
        "check",
        lambda lab, settings: {n: LAB_SETTINGS.get(n, v) for n, v in check_settings(lab, settings).items()},
    )
    for name in ("generate", "stream", "request"):
        monkeypatch.setattr(LanguageModel, name, limit_tokens(getattr(LanguageModel, name)))
