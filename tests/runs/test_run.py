"""A training run: exact, reproducible, on time."""

import math
from itertools import count

import numpy as np
import pytest
import torch

from clearhead.errors import UserError
from clearhead.language_model import load
from clearhead.runs import run as run_module
from clearhead.runs.progress import ExponentialAverage
from clearhead.runs.request import TrainingRequest, with_time
from clearhead.runs.run import Run
from clearhead.runs.summary import describe_training
from clearhead.runs.threads import using_threads
from clearhead.text.corpus import Document, documents

SMALL = TrainingRequest(
    steps=8, blocks=1, heads=1, width=32, context=32, tokenizer="char", dropout=0.1, device="cpu"
)


SIZES = {"blocks": 1, "heads": 1, "width": 32, "context": 32, "batch": 4, "tokenizer": "byte"}


def request(**settings):
    return TrainingRequest(**{**vars(SMALL), **settings})


@pytest.fixture
def texts(story_text):
    return [Document.of("a", story_text[:6000]), Document.of("b", story_text[6000:9000])]


def finished(texts, settings):
    run = Run(texts, settings)
    list(run)
    return run


def test_same_seed_gives_identical_weights(texts):
    torch.manual_seed(99)
    one = finished(texts, SMALL).model.network.state_dict()
    torch.rand(5)
    same = finished(texts, SMALL).model.network.state_dict()
    other = finished(texts, request(seed=1)).model.network.state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["embedding.weight"], other["embedding.weight"])


def test_generating_and_evaluating_do_not_affect_training(texts):
    run = Run(texts, SMALL)
    for progress in run:
        if progress.record.step % 3 == 0:
            run.model.generate(tokens=5)
            run.model.evaluate("Anna had a kite.")
    plain = finished(texts, SMALL)
    for name, tensor in plain.model.network.state_dict().items():
        assert torch.equal(tensor, run.model.network.state_dict()[name])


def loss_by_hand(model, tokens, before):
    """Sum over consecutive windows, each preceded by the actual token before it; the last may be shorter."""
    ids, T = np.concatenate(([before], tokens)), model.config.n_context
    total = 0.0
    for start in range(0, len(tokens), T):
        window = torch.from_numpy(ids[start : start + T + 1])
        with torch.no_grad():
            logits = model.network(window[None, :-1])[0].double()
        total += float((logits.logsumexp(-1) - logits.gather(1, window[1:, None])[:, 0]).sum())
    return total / len(tokens)


def test_validation_loss_is_exact(trained):
    tokens = trained.validation[:]
    before = int(trained.tokens[:][-1])
    loss = trained.progress[-1].validation
    assert loss == trained.losses[-1] == trained.model.training["validation_loss"]
    assert loss == pytest.approx(loss_by_hand(trained.model, tokens, before), rel=1e-6)
    assert loss < math.log(trained.tokenizer.n_vocab)


def test_end_of_the_text_is_used_for_validation(texts):
    run = Run(texts, SMALL)
    end = run.tokenizer.end_id
    whole = [end]
    for document in texts:
        [text] = document.read()
        whole += [*run.tokenizer.encode(text), end]
    assert [*run.tokens[:], *run.validation[:]] == whole
    assert len(run.validation) == pytest.approx(0.1 * len(whole), abs=1)
    half = Run(texts, request(validation=0.5))
    assert len(half.validation) == pytest.approx(0.5 * len(whole), abs=1)
    assert [*half.tokens[:], *half.validation[:]] == whole


def test_validation_can_use_separate_files(texts, story_text, tmp_path):
    (tmp_path / "a.txt").write_text("Anna had a kite. " * 5)
    (tmp_path / "b.txt").write_text("The kite was hers.")
    names = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    run = finished(texts, request(validation=names))
    end = run.tokenizer.end_id
    expected = [*run.tokenizer.encode("Anna had a kite. " * 5), end]
    expected += [*run.tokenizer.encode("The kite was hers."), end]
    assert run.validation[:].tolist() == expected
    assert len(run.tokens) == 9000 + 3
    assert run.losses[-1] == run.model.evaluate(list(documents(names))).loss


def test_progress_reports_every_step(trained):
    records = [progress.record for progress in trained.progress]
    assert [record.step for record in records] == list(range(1, 31))
    batch = trained.plan.recipe.batch_size * trained.plan.config.n_context
    assert [record.tokens for record in records] == [batch * step for step in range(1, 31)]
    assert all(progress.steps == 30 for progress in trained.progress)
    validated = [p.record.step for p in trained.progress if p.validation is not None]
    assert validated == [6, 12, 18, 24, 30]
    seconds = [progress.seconds for progress in trained.progress]
    assert seconds == sorted(seconds)
    assert trained.progress[-1].loss < trained.progress[0].loss


def test_run_description_is_complete(trained, story_text):
    told = describe_training(trained)
    assert told == trained.model.training
    assert told["preset"] == "modern"
    assert told["steps_done"] == told["recipe"]["steps"] == 30
    assert told["recipe"] == vars(trained.plan.recipe)
    assert told["tokens"] + told["validation_tokens"] == len(story_text) + 2
    assert told["validation_loss"] == trained.losses[-1]
    assert (told["validations"], told["seconds"]) == (5, None)
    assert len(told["text_sha256"]) == 64


def test_stopped_run_describes_its_progress(texts):
    run = Run(texts, SMALL)
    for progress in run:
        if progress.record.step == 3:
            break
    run.finish()
    assert run.model.training["steps_done"] == 3
    assert not run.model.network.training


def test_model_with_infinite_loss_can_be_saved(texts, tmp_path):
    run = Run(texts, request(steps=1))
    list(run)
    run.losses.append(math.inf)
    run.finish()
    run.model.save(tmp_path / "model")
    assert load(tmp_path / "model").training["validation_loss"] is None


@pytest.mark.clock
def test_run_ends_on_time_in_real_time(story_file):
    run = Run(list(documents([story_file])), TrainingRequest(minutes=0.1, device="cpu"))
    progress = list(run)
    assert 3 < run.seconds < 12
    assert progress[-1].validation is not None


def test_run_with_minutes_ends_on_time(story_file, work_clock):
    run = Run(list(documents([story_file])), TrainingRequest(minutes=0.1, device="cpu"))
    progress = list(run)
    assert run.seconds == pytest.approx(6, rel=0.05)
    assert progress[-1].record.step == progress[-1].steps == run.plan.recipe.steps
    assert progress[-1].record.lr_scale <= 2 / progress[-1].steps, "the learning rate has not decayed"
    assert progress[-1].validation is not None


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_run_ends_on_time_when_speed_changes(factor, story_file, work_clock, tmp_path):
    """From halfway on, the same work takes `factor` times as long."""
    request = TrainingRequest(minutes=0.1, device="cpu", **SIZES)
    run = Run(list(documents([story_file])), request, tmp_path)
    progress = []
    for each in run:
        progress.append(each)
        if work_clock.now > 3:
            work_clock.factor = factor
    assert run.seconds == pytest.approx(6, rel=0.1)
    assert progress[-1].validation is not None
    validated = [each.record.step for each in progress if each.validation is not None]
    assert len(validated) <= run.plan.validations
    assert progress[-1].record.lr_scale < 0.1, "the learning rate has not decayed"


def test_timed_run_ignores_a_wall_clock_that_jumps(story_file, work_clock, monkeypatch):
    """For example, the clock is set forward or backward during training."""
    jumps = count()
    monkeypatch.setattr("time.time", lambda: 4e9 * (next(jumps) % 2))
    run = Run(list(documents([story_file])), TrainingRequest(minutes=0.1, device="cpu", **SIZES))
    steps = [progress.record.step for progress in run]
    assert run.seconds == pytest.approx(6, rel=0.1)
    assert steps[-1] == run.plan.recipe.steps


def test_time_spent_by_the_caller_counts(story_file, tmp_path, work_clock):
    request = TrainingRequest(minutes=0.1, device="cpu", **SIZES)
    run = Run(list(documents([story_file])), request, tmp_path, began=work_clock.now - 1.0)
    run.ending = 1.5
    for _ in run:
        work_clock.advance(0.03)  # such as saving a checkpoint
    assert run.seconds == pytest.approx(6 - 1.5, rel=0.15)
    assert run.prepared > 1.0


def test_expired_time_limit_still_trains_one_step(story_file, tmp_path, work_clock):
    began = work_clock.now - 100
    run = Run(
        list(documents([story_file])), TrainingRequest(minutes=0.01, device="cpu"), tmp_path, began=began
    )
    [progress] = run
    assert progress.record.step == 1
    assert progress.validation is not None


def test_slow_validation_reads_less_text(story_text, tmp_path, work_clock):
    request = TrainingRequest(minutes=0.05, device="cpu", validation=0.9, **SIZES)
    run = Run([Document.of("long", story_text * 20)], request, tmp_path)
    assert run.plan.validations == 1
    assert 32 <= len(run.validation) == run.plan.validated < 0.5 * len(story_text) * 20
    assert list(run)[-1].validation is not None
    assert run.model.training["validation_tokens"] == run.plan.validated


def test_deterministic_changes_nothing_on_cpu(texts):
    one = finished(texts, SMALL).model.network.state_dict()
    same = finished(texts, request(deterministic=True)).model.network.state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.are_deterministic_algorithms_enabled()


def test_requested_settings_are_used(texts, work_clock):
    asked = request(
        blocks=2, heads=4, kv_heads=2, width=24, context=12, batch=6, accumulation=3, preset="lecture",
        optimizer="adamw", learning_rate=0.01, seed=7, dropout=0.0, minutes=0.01, steps=None,
    )  # fmt: skip
    run = Run(texts, asked)
    config, recipe = run.plan.config, run.plan.recipe
    assert (config.n_block, config.n_head, config.n_kv_head, config.d_model) == (2, 4, 2, 24)
    assert (config.n_context, config.norm, config.dropout) == (12, "layer", 0.0)
    assert (recipe.batch_size, recipe.accumulation, recipe.seed) == (6, 3, 7)
    assert (recipe.optimizer, recipe.learning_rate) == ("adamw", 0.01)


@pytest.mark.parametrize(
    ("length", "time"),
    [(20, {"steps": 2}), (300, {"steps": 2}), (20, {"minutes": 0.005}), (300, {"minutes": 0.005})],
)
def test_tiny_texts_get_a_suitable_plan(length, time, story_text, work_clock):
    run = Run([Document.of("tiny", story_text[:length])], TrainingRequest(**time, device="cpu"))
    config = run.plan.config
    assert run.tokenizer.kind == "byte"
    assert 8 <= config.n_context <= max(8, length / 8)
    assert len(run.validation) >= 1
    progress = list(run)
    assert math.isfinite(progress[-1].validation)
    assert run.model.generate(tokens=3) is not None


@pytest.mark.parametrize("length", [1, 2, 5, 10])
def test_too_short_texts_are_rejected(length):
    with pytest.raises(UserError, match="provide more text"):
        Run([Document.of("tiny", "abcdefghij"[:length])], TrainingRequest(steps=1, device="cpu"))


def test_tokenizer_vocabulary_grows_with_the_text(story_text):
    small = Run([Document.of("a", story_text[:10_000])], request(tokenizer=None))
    large = Run([Document.of("a", story_text * 2)], request(tokenizer=None))
    assert (small.tokenizer.kind, small.tokenizer.n_vocab) == ("byte", 257)
    assert large.tokenizer.kind == "bpe"
    assert 257 < large.tokenizer.n_vocab <= 512


def test_tokenizer_is_not_trained_on_validation_text(story_text):
    secret = "xyzzyx" * 40
    text = story_text[:20_000]
    run = Run([Document.of("a", text + secret)], request(tokenizer="bpe", vocab=300, validation=0.05))
    assert not any("xyzzy" in piece for piece in run.tokenizer.pieces(range(run.tokenizer.n_vocab)))


def test_time_limit_defaults_to_three_minutes():
    assert with_time(TrainingRequest()).minutes == 3
    assert with_time(TrainingRequest(steps=5)) == TrainingRequest(steps=5)
    assert with_time(TrainingRequest(minutes=1)) == TrainingRequest(minutes=1)


def test_exponential_average_forgets_old_values():
    smooth = ExponentialAverage()
    assert [smooth(number) for number in (4.0, 2.0, 3.0, 5.0)] == [4.0, 2.0, 3.0, 5.0]
    assert smooth(0.0) == pytest.approx(1.0)  # over 5/4 values
    for _ in range(400):
        smooth(7.0)
    assert smooth.mean == pytest.approx(7.0)
    smooth(27.0)
    assert smooth.mean == pytest.approx(8.0)  # over 20 values


def test_exponential_average_follows_the_loss_of_a_short_run():
    smooth, losses = ExponentialAverage(), [2 + 6 * 0.9**step for step in range(40)]
    shown = [smooth(loss) for loss in losses]
    assert all(0 <= mean - loss < 0.5 for mean, loss in zip(shown, losses, strict=True))
    assert shown[-1] - losses[-1] < 0.2


def test_run_stopped_between_validations_has_no_validation_loss(story_file, tmp_path):
    run = Run(list(documents([story_file])), request(steps=10), cache=tmp_path)
    for progress in run:
        if run.losses and progress.validation is None:
            break
    run.finish()
    assert run.losses
    assert run.model.training["steps_done"] < 10
    assert run.model.training["validation_loss"] is None


def test_timed_run_on_a_busy_machine_prints_a_note_and_restores_the_threads(texts, monkeypatch):
    monkeypatch.setattr(run_module, "describe_load", lambda threads: "other programs are using the processor")
    before = torch.get_num_threads()
    with using_threads(2):
        run = Run(texts, request(steps=None, minutes=0.01))
        assert run.notes == ["other programs are using the processor"]
        list(run)
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == before


def test_run_of_a_given_number_of_steps_does_not_watch_the_machine(texts, monkeypatch):
    monkeypatch.setattr(run_module, "describe_load", lambda threads: "other programs are using the processor")
    assert Run(texts, SMALL).notes == []
    assert Run(texts, SMALL).threads is None
