"""Evaluating texts: each file and each conversation is scored as if it were alone."""

import json

import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.language_model import LanguageModel
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.corpus import Document, documents
from clearhead.text.tokenizer import Tokenizer

TEMPLATE = (
    "{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}<|endoftext|>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture(scope="module", params=["gpt2", "modern"])
def model(request):
    tokenizer = Tokenizer.train("byte", [])
    tokenizer = Tokenizer(tokenizer._inner, {**tokenizer.config, "chat_template": TEMPLATE})
    torch.manual_seed(0)
    config = preset(request.param, n_vocab=tokenizer.n_vocab, n_context=256, n_block=2, n_head=2, d_model=16)
    return LanguageModel(Transformer(config).double(), tokenizer)


def test_conversations_have_the_loss_of_each_alone(model, tmp_path):
    lines = [
        json.dumps(
            {
                "messages": [
                    {"role": "user", "content": f"{i}?"},
                    {"role": "assistant", "content": "yes " * (i + 1)},
                ]
            }
        )
        for i in range(5)
    ]
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    for i, line in enumerate(lines):
        (tmp_path / f"{i}.jsonl").write_text(line)
    together = model.evaluate(tmp_path / "all.jsonl")
    alone = [model.evaluate(tmp_path / f"{i}.jsonl") for i in range(5)]
    assert together.replies
    assert together.tokens == sum(each.tokens for each in alone)
    mean = np.average([each.loss for each in alone], weights=[each.tokens for each in alone])
    assert together.loss == pytest.approx(mean, rel=1e-6)


def test_files_and_parts_between_end_tokens_have_the_loss_of_each_alone(model, tmp_path):
    texts = ["The cat sat.", "A dog ran to the river, and swam.", "Who knows? " * 40]
    alone = [model.evaluate(text) for text in texts]
    mean = np.average([each.loss for each in alone], weights=[each.tokens for each in alone])
    files = model.evaluate([Document.of(str(i), text) for i, text in enumerate(texts)])
    (tmp_path / "joined.txt").write_text("\n<|endoftext|>\n".join(texts))
    joined = model.evaluate(list(documents([tmp_path / "joined.txt"])))
    assert files.tokens == joined.tokens == sum(each.tokens for each in alone)
    assert files.loss == pytest.approx(mean, rel=1e-6)
    assert joined.loss == pytest.approx(mean, rel=1e-6)


def test_text_that_is_a_path_is_read_from_the_file(model, tmp_path):
    path = tmp_path / "my.txt"
    path.write_text("The cat sat on the mat.")
    expected = model.evaluate("The cat sat on the mat.")
    assert model.evaluate(str(path)) == model.evaluate(path) == expected
    with pytest.raises(UserError, match=r"no such file: missing\.txt"):
        model.evaluate("missing.txt")
    assert model.evaluate("Well. This is a text").tokens == 21
