"""Fine-tuning an existing model: all of its weights, or LoRA adapters only."""

import itertools
import json
import math
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

import clearhead
from clearhead.errors import UserError
from clearhead.language_model import LanguageModel
from clearhead.model.transformer import Transformer
from clearhead.runs import recipes
from clearhead.runs.measure import Measure
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.runs.saved_run import SavedRun
from clearhead.runs.threads import using_threads
from clearhead.text.corpus import documents
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.lora import count_parameters

CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content']"
    " + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
OTHER = "The chicken didn't cross the road because it was too tired.\n" * 60


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "other.txt"
    path.write_text(OTHER, encoding="utf-8")
    return path


def request(start, **settings):
    return TrainingRequest(
        **{"steps": 12, "start": str(start), "context": 32, "batch": 4, "device": "cpu", **settings}
    )


def train_until(folder, text, cache, settings, step):
    kept = SavedRun.open(folder, list(documents([text])), settings, True, cache=cache)
    with kept:
        for progress in kept:
            if progress.record.step == step:
                kept.save()
                return
        kept.run.model.save(folder, overwrite=True)
        kept.finish()


@pytest.mark.parametrize("lora", [None, 4])
def test_fine_tuning_starts_from_the_given_model(lora, model_folder, text, tmp_path):
    start = clearhead.load(model_folder, "cpu")
    run = Run(list(documents([text])), request(model_folder, lora=lora, learning_rate=0.01), tmp_path)
    assert run.tokenizer.to_json() == start.tokenizer.to_json()
    assert torch.equal(run.model.logits("The"), start.logits("The"))
    assert (run.plan.config.n_context, run.plan.context) == (64, 32)
    assert run.trainer.batches.at(0)[0].shape == (4, 32)
    losses = [run.validate(), *(progress.validation for progress in run)]
    assert losses[-1] < losses[0] - 0.1
    assert run.model.config.n_context == 64
    assert run.model.training["start_sha256"] == run.request.start_sha256 != ""
    assert run.model.training["start"] == str(model_folder)


@pytest.mark.parametrize("lora", [None, 4])
def test_transformers_loads_the_fine_tuned_model(lora, model_folder, text, tmp_path):
    model = clearhead.train(text, tmp_path / "out", start=model_folder, lora=lora, steps=5, device="cpu")
    assert count_parameters(model.network) == model.config.n_parameter
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    ids = torch.tensor([model.tokenizer.encode("The chicken")])
    with torch.no_grad():
        assert torch.allclose(theirs(ids).logits[0], model.logits("The chicken"), rtol=0, atol=1e-4)
    again = clearhead.load(tmp_path / "out", "cpu")
    assert torch.equal(again.logits("The chicken"), model.logits("The chicken"))
    assert model.generate("The", tokens=5, temperature=0) == again.generate("The", tokens=5, temperature=0)


def test_every_window_begins_with_the_start_token_if_the_model_expects_one(copied_model, text, tmp_path):
    (copied_model / "clearhead.json").unlink()  # its hashes do not match the files changed here
    path = copied_model / "tokenizer_config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "bos_token": "!", "add_bos_token": True}))
    run = Run(list(documents([text])), request(copied_model, steps=2, batch=32), tmp_path)
    [start] = run.tokenizer.start_ids
    assert (run.trainer.batches.at(0).inputs[:, 0] == start).all()
    joined = [*run.tokens[len(run.tokens) - 1 :].tolist(), *run.validation[:].tolist()]
    losses = []
    for first in range(0, len(joined) - 1, 31):  # 31 tokens after the start token
        targets = joined[first + 1 : first + 32]
        scores = run.model.logits([start, *joined[first : first + len(targets)]]).log_softmax(-1)[1:]
        losses += (-scores[range(len(targets)), targets]).tolist()
    assert run.validate() == pytest.approx(np.mean(losses), rel=1e-5)
    assert all(math.isfinite(progress.record.loss) for progress in run)


def test_model_without_an_end_token_can_be_fine_tuned_on_one_text(copied_model, text, tmp_path):
    (copied_model / "clearhead.json").unlink()  # its hashes do not match the files changed here
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        settings = json.loads((copied_model / name).read_text())
        ends = {key: None for key in settings if key.startswith(("eos_token", "bos_token"))}
        (copied_model / name).write_text(json.dumps({**settings, **ends}))
    clearhead.train(text, tmp_path / "out", start=copied_model, steps=2, context=32, batch=4, device="cpu")
    model = clearhead.load(tmp_path / "out", "cpu")
    assert model.tokenizer.end_id is None
    assert model.generate("The", 70).finish_reason == "length"
    (tmp_path / "more.txt").write_text(OTHER)
    with pytest.raises(UserError, match="a text of several documents requires an end token"):
        clearhead.train([text, tmp_path / "more.txt"], tmp_path / "two", start=copied_model, steps=2)


def test_only_the_adapters_are_trained(model_folder, text, tmp_path):
    run = Run(list(documents([text])), request(model_folder, lora=4), tmp_path)
    before = {name: each.clone() for name, each in run.model.network.named_parameters()}
    progress = [each.record for each in run]
    changed = {
        name for name, each in run.model.network.named_parameters() if not torch.equal(each, before[name])
    }
    assert changed == {name for name in before if name.endswith((".A", ".B"))}
    assert len(progress) == 12
    weights = [name for name in run.checkpoint().tensors if name.startswith("network.")]
    assert weights
    assert all(name.endswith((".A", ".B")) for name in weights)
    trace = run.model.inspect("The chicken")
    assert trace.verify() <= 1e-5
    assert torch.allclose(trace.logits, run.model.logits("The chicken"), rtol=0, atol=1e-5)


@pytest.mark.parametrize("bfloat16", [False, True])
@pytest.mark.parametrize("lora", [None, 4])
def test_resumed_run_matches_an_uninterrupted_run(lora, bfloat16, model_folder, text, tmp_path, monkeypatch):
    monkeypatch.setattr(recipes, "has_fast_bfloat16", lambda device: bfloat16)
    settings = request(model_folder, lora=lora, dropout=0.1)
    train_until(tmp_path / "whole", text, tmp_path, settings, None)
    for stop in (1, 7, None):
        train_until(tmp_path / "broken", text, tmp_path, settings, stop)
    for name in ("metrics.jsonl", "model.safetensors", "clearhead.json", "config.json", "tokenizer.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes(), name


def test_resuming_from_a_different_base_model_is_rejected(copied_model, text, tmp_path):
    train_until(tmp_path / "run", text, tmp_path, request(copied_model, lora=2), 3)
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["request"]
    assert kept["start"] == str(copied_model)
    assert len(kept["start_sha256"]) == 64
    elsewhere = shutil.copytree(copied_model, tmp_path / "elsewhere")
    with pytest.raises(UserError, match="`start` was"):
        train_until(tmp_path / "run", text, tmp_path, request(elsewhere, lora=2), None)
    other = clearhead.load(copied_model, "cpu")
    with torch.no_grad():
        other.network.embedding.weight += 0.1
    other.save(copied_model, overwrite=True)
    with pytest.raises(UserError, match="the weights in `start` have changed"):
        train_until(tmp_path / "run", text, tmp_path, request(copied_model, lora=2), None)


def test_gguf_files_can_be_fine_tuned(model_folder, text, tmp_path):
    byte = clearhead.train(
        text, tokenizer="byte", steps=2, blocks=1, width=32, heads=1, context=32, device="cpu"
    )
    byte.export(tmp_path / "model.gguf", "gguf", "F32")
    run = Run(list(documents([text])), request(tmp_path / "model.gguf", steps=2), tmp_path)
    assert torch.allclose(run.model.logits("The"), byte.logits("The"), atol=1e-5)
    assert len(list(run)) == 2


def test_training_takes_the_requested_minutes(model_folder, text, tmp_path, work_clock):
    run = Run(list(documents([text])), request(model_folder, steps=None, minutes=0.04, batch=None), tmp_path)
    assert run.plan.config == replace(clearhead.load(model_folder, "cpu").config, dropout=0.0)
    assert list(run)[-1].validation is not None
    assert run.seconds == pytest.approx(2.4, rel=0.1)


@pytest.mark.parametrize(
    ("seconds", "threads"),
    [
        ({4: 0.5, 2: 0.3, 1: 0.2}, 1),
        ({4: 0.5, 2: 0.3, 1: 0.29}, 2),
        ({4: 0.5, 2: 0.48, 1: 0.1}, 4),
        ({4: 10.0}, 4),  # too long to try
    ],
)
def test_fewer_threads_are_used_if_they_are_faster(
    seconds, threads, model_folder, text, tmp_path, monkeypatch
):
    tried = []

    def take(*_):
        tried.append(torch.get_num_threads())
        return seconds[tried[-1]]

    monkeypatch.setattr("clearhead.runs.start._seconds", take)
    with using_threads(4):
        run = Run(list(documents([text])), request(model_folder, steps=None, minutes=1, batch=2), tmp_path)
    assert run.plan.threads == run.threads.count == threads
    assert set(tried) <= set(seconds)


@pytest.mark.parametrize(
    ("seconds", "context", "rows", "rate"),
    [(1e-3, 128, 2, 1e-3), (0.02, 128, 1, 1e-3), (0.04, 64, 1, 1e-3), (0.4, 64, 1, 3e-3)],
)
def test_few_steps_get_short_windows_and_a_high_rate(
    seconds, context, rows, rate, talker, tmp_path, text, monkeypatch
):
    """In a minute: 23 steps of 128 tokens at 0.02 s per token, or 23 steps of 64 tokens at 0.04 s."""
    monkeypatch.setattr(
        "clearhead.runs.start.measure_start", lambda *_: Measure(2, seconds, seconds / 3, False, 1)
    )
    settings = request(talker, steps=None, minutes=1, context=None, batch=None, lora=2)
    plan = Run(list(documents([text])), settings, tmp_path).plan
    assert (plan.context, plan.recipe.batch_size, plan.recipe.learning_rate) == (context, rows, rate)
    assert bool([warning for warning in plan.warnings(10**9, True) if "step" in warning]) == (rate > 1e-3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 64}, "`width` applies to a new model"),
        ({"tokenizer": "byte"}, "`tokenizer` applies to a new model"),
        ({"preset": "gpt2"}, "`preset` applies to a new model"),
        ({"kind": "ngram", "steps": None}, "`kind` applies to a new model"),
        ({"bidirectional": True}, "`bidirectional` applies to a new model"),
        ({"lora": 0}, "lora = 0: expected a rank"),
        ({"lora": 2, "optimizer": "muon"}, "trains with adamw"),
        ({"start": "no/such/model"}, "no such folder or file"),
        ({"start": None, "lora": 2}, "name it with `start`"),
    ],
)
def test_invalid_or_incompatible_settings_are_rejected(settings, message, model_folder):
    with pytest.raises(UserError, match=message):
        TrainingRequest(**{"steps": 1, "start": str(model_folder), "device": "cpu", **settings})


def test_training_context_longer_than_the_model_context_is_rejected(model_folder, text, tmp_path):
    with pytest.raises(UserError, match="is 64 tokens"):
        Run(list(documents([text])), request(model_folder, context=65), tmp_path)


TALKS = [
    [
        {"role": "user", "content": f"What is {a} and {b}?"},
        {"role": "assistant", "content": f"It is {a + b}."},
    ]
    for a in range(8)
    for b in range(8)
]


@pytest.fixture
def talker(model_folder, tmp_path):
    """A small model with a chat template."""
    start = clearhead.load(model_folder, "cpu")
    tokenizer = Tokenizer.train("byte", [])
    tokenizer._inner.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer = Tokenizer(tokenizer._inner, {**tokenizer.config, "chat_template": CHATML})
    torch.manual_seed(0)
    config = replace(start.config, n_vocab=tokenizer.n_vocab, n_context=128)
    LanguageModel(Transformer(config), tokenizer).save(tmp_path / "talker")
    return tmp_path / "talker"


@pytest.fixture
def talks(tmp_path):
    path = tmp_path / "talks.jsonl"
    path.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in TALKS))
    return path


def test_conversation_loss_counts_only_replies(talker, talks, tmp_path):
    settings = request(talker, steps=40, learning_rate=0.01, context=64, accumulation=2)
    run = Run(list(documents([talks])), settings, tmp_path)
    progress = list(run)
    assert progress[-1].validation < progress[0].loss - 1
    n, total, count = len(run.validation), 0.0, 0
    firsts = np.flatnonzero(run.validation.document_starts(0, n)).tolist()
    assert firsts[0] == 0, "a conversation is split"
    for first, last in itertools.pairwise([*firsts, n]):
        ids, targets = run.validation[first:last], run.validation.targets[first + 1 : last]
        for start in range(0, len(targets), 64):
            window = torch.from_numpy(ids[start : start + 65])
            with torch.no_grad():
                surprise = -run.model.network(window[None])[0].double().log_softmax(-1)
            for i, target in enumerate(targets[start : start + 64]):
                if target >= 0:
                    total, count = total + float(surprise[i, target]), count + 1
    assert 0 < count < n
    assert progress[-1].validation == pytest.approx(total / count, rel=1e-5)
    assert run.model.tokenizer.config["chat_template"] == CHATML


def test_gradient_accumulation_matches_a_single_batch(talker, talks, tmp_path):
    """The micro-batches contain replies of different lengths."""
    runs = []
    for accumulation in (1, 4):
        settings = request(talker, steps=1, accumulation=accumulation, context=64)
        run = Run(list(documents([talks])), settings, tmp_path)
        (progress,) = run
        runs.append((progress.record.loss, progress.record.gradient_norm))
    assert runs[0] == pytest.approx(runs[1], rel=1e-5)


def test_conversations_without_a_chat_template_are_rejected(model_folder, talks, tmp_path):
    with pytest.raises(UserError, match="has no chat template"):
        Run(list(documents([talks])), request(model_folder), tmp_path)


def test_errors_in_python_name_the_keyword():
    with pytest.raises(UserError, match="`lora` fine-tunes an existing model: name it with `start`"):
        TrainingRequest(lora=8)


@pytest.mark.parametrize(("name", "meant"), [("lr", "'learning_rate'"), ("epochs", "'steps' or 'minutes'")])
def test_names_from_other_libraries_get_a_suggestion(name, meant):
    with pytest.raises(UserError, match=f"unknown setting '{name}'; .*{meant}"):
        TrainingRequest.of({name: 3})


def test_text_that_is_not_a_path_is_rejected():
    with pytest.raises(UserError, match="sources = 3: expected a file"):
        clearhead.train(3)


def test_same_text_keeps_its_split(story_file, tmp_path):
    """The second run does not train on the text that the first used for validation."""
    texts = list(documents([story_file]))
    small = {"blocks": 1, "heads": 1, "width": 16, "context": 32, "batch": 2, "device": "cpu"}
    first = Run(texts, TrainingRequest(steps=1, tokenizer="byte", **small), tmp_path)
    list(first)
    first.model.save(tmp_path / "first")
    second = Run(texts, request(tmp_path / "first", steps=1), tmp_path)
    assert len(second.tokens) == len(first.tokens)
    assert second.validation[:].tolist() == first.validation[:].tolist()
    list(second)
    second.model.save(tmp_path / "second")
    third = Run(texts, request(tmp_path / "second", steps=1), tmp_path)
    assert len(third.tokens) == len(first.tokens)
    other = Run(texts, request(tmp_path / "first", steps=1, validation=0.3), tmp_path)
    assert len(other.tokens) < len(first.tokens)
