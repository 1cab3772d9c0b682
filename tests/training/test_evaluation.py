"""Evaluating texts: each file and each conversation is scored as if it were alone."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tokenizers
import torch

from clearhead.errors import UserError
from clearhead.language_model import LanguageModel, load
from clearhead.model.config import preset
from clearhead.model.transformer import Transformer
from clearhead.text.corpus import Document, documents
from clearhead.text.tokenizer import Tokenizer

TEXT = "Anna had a kite. It flew."
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


def test_each_conversation_has_the_loss_that_it_has_alone(model, tmp_path):
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


def test_each_file_and_part_between_end_tokens_has_the_loss_that_it_has_alone(model, tmp_path):
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


def by_hand(model, ids, context, stride, start=None):
    """The mean loss of ids[1:]: each window alone, its last `stride` tokens counted. Position 0 holds `start`."""
    room = context if start is None else context - 1
    losses, stop = [], 0
    while stop < len(ids) - 1:
        first = stop
        stop = min(stop + (min(stride, room) if stop else context), len(ids) - 1)
        begin = max(0, first + min(stride, room) - room) if first else 0
        shown = ids[begin:stop]
        if start is not None:
            shown = [start, *(shown[1:] if begin == 0 else shown)]
        scores = model.logits(shown).log_softmax(-1)
        losses += [-scores[i - stop, ids[i + 1]].item() for i in range(first, stop)]
    return losses


@pytest.mark.parametrize(("context", "stride"), [(None, None), (16, None), (16, 5), (7, 1)])
@pytest.mark.parametrize("starts", [False, True])
def test_windows_and_strides_match_a_computation_by_hand(model, starts, context, stride):
    tokenizer, end = model.tokenizer, model.tokenizer.end_id
    if starts:
        first = tokenizer.tokens[0]  # any token can be the one with which texts begin
        config = {**tokenizer.config, "bos_token": first, "add_bos_token": True}
        tokenizer = Tokenizer(tokenizers.Tokenizer.from_str(tokenizer.to_json()), config)
        assert tokenizer.start_ids == [0]
        model = LanguageModel(model.network, tokenizer)
    ids = [end, *tokenizer.encode(TEXT), end]
    width = context or 256
    expected = by_hand(model, ids, width, stride or width, 0 if starts else None)
    assert len(expected) == len(TEXT) + 1
    evaluation = model.evaluate(TEXT, context=context, stride=stride)
    assert evaluation.loss == pytest.approx(np.mean(expected), rel=1e-9)
    assert (evaluation.tokens, evaluation.context, evaluation.stride) == (
        len(expected),
        width,
        stride or width,
    )
    several = model.evaluate([Document.of("a", TEXT)] * 3, context=context, stride=stride)
    assert several.loss == pytest.approx(evaluation.loss, rel=1e-6)


def test_windows_out_of_range_are_refused(model):
    with pytest.raises(UserError, match="context = 257: expected 2 to 256, the context of this model"):
        model.evaluate(TEXT, context=257)
    with pytest.raises(UserError, match="stride = 17: expected 1 to 16, the length of the windows"):
        model.evaluate(TEXT, context=16, stride=17)


@pytest.mark.parametrize("starts", [False, True])
def test_model_without_end_token_generates_to_the_limit_and_is_evaluated(model, starts, tmp_path):
    inner = tokenizers.Tokenizer.from_str(model.tokenizer.to_json())
    config = {"bos_token": model.tokenizer.tokens[0], "add_bos_token": True} if starts else {}
    endless = LanguageModel(model.network.float(), Tokenizer(inner, config))
    endless.save(tmp_path)
    endless = load(tmp_path, "cpu")
    assert endless.tokenizer.end_ids == ()
    written = endless.generate("Anna", 40)
    assert (len(written.ids), written.finish_reason) == (40, "length")
    assert [text.finish_reason for text in endless.generate(["Anna", "It"], 5)] == ["length"] * 2
    assert endless.generate("It", 5, beams=2).finish_reason == "length"
    evaluation = endless.evaluate(TEXT)
    ids = endless.tokenizer.start_ids + endless.tokenizer.encode(TEXT)
    scores = endless.logits(ids[:-1]).log_softmax(-1)
    assert evaluation.loss == pytest.approx(-scores[range(len(ids) - 1), ids[1:]].mean().item(), rel=1e-5)
    assert (evaluation.tokens, evaluation.bytes) == (len(ids) - 1, len(ids) - 1)
    with pytest.raises(UserError, match="a text of several documents requires an end token"):
        endless.evaluate([Document.of("a", TEXT), Document.of("b", TEXT)])
    if not starts:
        with pytest.raises(UserError, match="generating without a prompt requires an end token"):
            endless.generate()


def test_texts_begin_with_the_start_token_and_ids_are_taken_as_they_are(model):
    config = {**model.tokenizer.config, "bos_token": model.tokenizer.tokens[0], "add_bos_token": True}
    tokenizer = Tokenizer(tokenizers.Tokenizer.from_str(model.tokenizer.to_json()), config)
    begun, ids = LanguageModel(model.network, tokenizer), tokenizer.encode(TEXT)
    assert torch.equal(begun.logits(TEXT), begun.logits([0, *ids]))
    assert begun.logits(ids).shape[0] == len(ids)
    assert begun.generate(TEXT, 5).ids == begun.generate([0, *ids], 5).ids
    assert begun.inspect(TEXT).ids.tolist() == begun.inspect([0, *ids]).ids.tolist()


@pytest.mark.slow
def test_memory_does_not_grow_with_the_vocabulary():
    # All 2,048 × 262,144 logits would take 2.1 GB, and as much again for their logarithms.
    run = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 500e6, f"{int(run.stdout):,} bytes more than before"


MEASURE = """
from pathlib import Path
import numpy as np, torch
from clearhead.model.config import Config
from clearhead.networks import make_network
from clearhead.text.evaluation_windows import windows_for_evaluation
from clearhead.text.tokens import Tokens
from clearhead.training.objective import evaluate

torch.set_num_threads(1)
network = make_network(Config(n_vocab=262144, n_context=2048, n_block=1, n_head=1, d_model=16, tied=True))
tokens = Tokens.of(np.arange(2048))
evaluate(network, windows_for_evaluation(tokens.part(0, 8), 8, 1, 0))
used = lambda key: 1024 * int(Path("/proc/self/status").read_text().partition(key)[2].split()[0])
Path("/proc/self/clear_refs").write_text("5")  # resets the peak
before = used("VmRSS:")
evaluate(network, windows_for_evaluation(tokens, 2048, 1, 0))
print(used("VmHWM:") - before)
"""
