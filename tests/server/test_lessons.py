"""The routes of a training step return the numbers of the lesson in Python."""

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.classics.recurrent import Recurrent
from clearhead.classics.recurrent_config import RecurrentConfig
from clearhead.language_model import LanguageModel
from clearhead.lessons.effect import measure_effect
from clearhead.server import lesson_cache
from clearhead.server.lesson_cache import LessonCache
from clearhead.server.lessons import list_stages
from tests.serving import make_model

TEXT, OTHER = "Once upon a time", "A fox"
KINDS = ("lecture", "gpt2", "modern")


@pytest.fixture(scope="module")
def every_kind(registry_of_kinds, running_server):
    with running_server(registry_of_kinds) as made:
        yield made


@pytest.fixture(params=KINDS)
def kind(request, every_kind):
    """A function that posts to a route about the text, and the lesson that its answers must equal."""
    model = every_kind.registry.model(request.param)
    with every_kind.client() as client:

        def ask(path="", **body):
            response = client.post(f"/api/lesson{path}", json={"model": request.param, "text": TEXT, **body})
            assert response.status_code == 200, response.text
            return response

        yield ask, ch.learn(model, TEXT)


def near(numbers, tensor):
    return np.allclose(numbers, tensor.detach().double().numpy(), rtol=1e-4, atol=1e-7)


def test_losses_and_stages(kind):
    ask, lesson = kind
    got = ask().json()
    assert got["tokens"] == lesson.texts[0]
    assert got["targets"][-1] is None
    assert [target["text"] for target in got["targets"][:-1]] == lesson.target_texts[0][:-1]
    losses = lesson.losses[:-1]
    assert near([target["loss"] for target in got["targets"][:-1]], losses)
    assert near([target["probability"] for target in got["targets"][:-1]], (-losses).exp())
    assert (got["n_targets"], got["optimizer"]) == (len(TEXT) - 1, lesson.trainer.recipe.optimizer)
    assert near([got["loss"], got["gradient_norm"]], torch.tensor([lesson.loss, lesson.gradient_norm]))
    assert got["stages"] == list_stages(lesson.network.config)
    for i, stage in enumerate(got["stages"]):
        assert near([row[i] for row in got["norms"]], lesson.gradient[stage].norm(dim=-1)), stage


@pytest.mark.parametrize("name", ["logits", "block.1.head.1.weights", "final.scale", "block.0.head.1.W_Q"])
def test_gradients(kind, name):
    ask, lesson = kind
    response = ask("/gradient", name=name)
    shape = [int(size) for size in response.headers["x-shape"].split(",")]
    assert near(np.frombuffer(response.content, "<f4").reshape(shape), lesson.gradient[name])
    part = ask("/gradient", name=name, rows=[1, 3])
    assert near(np.frombuffer(part.content, "<f4").reshape(2, *shape[1:]), lesson.gradient[name][1:3])


def test_errors_at_the_logits(kind):
    ask, lesson = kind
    got = ask("/errors", position=3, count=5).json()
    expected = lesson.value("probabilities")[3].double()
    target = lesson.target_ids[0, 3].item()
    expected[target] -= 1
    assert [each["is_target"] for each in got["errors"]].count(True) == 1
    for each in got["errors"]:
        assert each["error"] == pytest.approx(expected[each["id"]].item(), rel=1e-4)
        assert each["gradient"] == pytest.approx(lesson.gradient["logits"][3, each["id"]].item(), rel=1e-4)
    total = got["others"] + sum(each["error"] for each in got["errors"])
    assert total == pytest.approx(0, abs=1e-6)
    assert got["n_others"] == lesson.network.config.n_vocab - 5
    assert ask("/errors", position=-1).json()["errors"] == []


@pytest.mark.parametrize("name", ["final", "block.1.input", "block.0.head.0.masked", "block.0.head.1.W_V"])
def test_the_chain_rule(kind, name):
    ask, lesson = kind
    got = ask("/chain", name=name, row=2, column=1, count=3).json()
    expected = lesson.chain(name, 2, 1)
    assert (got["kind"], got["name"], got["row"], got["column"]) == (expected.kind, name, 2, 1)
    assert len(got["terms"]) + got["n_others"] == len(expected.terms)
    assert got["gradient"] == pytest.approx(expected.gradient, rel=1e-4, abs=1e-8)
    total = got["others"] + sum(term["value"] for term in got["terms"])
    assert total == pytest.approx(got["gradient"], rel=1e-4, abs=1e-7)
    for term in got["terms"]:
        assert term["value"] == pytest.approx(term["gradient"] * term["derivative"], rel=1e-5, abs=1e-12)


def test_a_logit_has_a_probability(kind):
    ask, lesson = kind
    target = lesson.target_ids[0, 1].item()
    got = ask("/chain", name="logits", row=1, column=target).json()
    assert (got["kind"], got["is_target"], got["terms"]) == ("loss", True, [])
    assert got["gradient"] == pytest.approx((got["probability"] - 1) / (len(TEXT) - 1), rel=1e-4)


@pytest.mark.parametrize(
    "place", [{"name": "block.1.W_1", "row": 3, "column": 2}, {"name": "final.gain", "row": 4}]
)
def test_the_update_of_a_weight(kind, place):
    ask, lesson = kind
    got = ask("/update", **place, count=20).json()
    index = (place["row"], place["column"]) if "column" in place else (place["row"],)
    numbers = lesson.update(place["name"]).at(*index)
    assert got["before"] == numbers.pop("before")
    assert got["after"] == pytest.approx(numbers.pop("after"), abs=1e-6)
    assert [term["name"] for term in got["terms"]] == list(numbers)
    change = sum(term["value"] for term in got["terms"])
    assert change == pytest.approx(got["after"] - got["before"], abs=1e-9)
    update = lesson.update(place["name"])
    assert (got["cause"], got["epsilon"]) == (update.cause(*index), update.epsilon)
    for asked in (20, 2):
        got = ask("/update", **place, count=asked).json()
        for tokens in (got["positions"], got["targets"]):
            whole = sum(part["value"] for part in tokens["parts"]) + tokens["others"]
            assert whole == pytest.approx(got["gradient"], rel=1e-3, abs=1e-7)
            assert len(tokens["parts"]) + tokens["n_others"] == len(lesson.ids[0])


def test_later_steps_are_explained_too(kind):
    ask, lesson = kind
    third = lesson.step(2)
    assert ask("", number=3).json()["loss"] == pytest.approx(third.loss, rel=1e-2)
    place = {"name": "block.1.W_1", "row": 3, "column": 2}
    got = ask("/update", **place, number=3).json()
    assert got["before"] == pytest.approx(third.update("block.1.W_1").before[3, 2].item(), abs=1e-4)
    before = ask("/update", **place, number=2).json()
    assert got["before"] == before["after"]


def test_the_step(kind):
    ask, lesson = kind
    got = ask("/step", other=OTHER, count=4).json()
    effect = measure_effect(lesson, OTHER, 4)
    assert got["loss"]["before"] == pytest.approx(lesson.loss, rel=1e-4)
    assert got["loss"]["after"] == pytest.approx(effect.loss.after, rel=1e-3)
    assert got["loss"]["after"] == pytest.approx(ch.learn(lesson.apply(), TEXT).loss, rel=1e-3)
    assert got["other"]["before"] == pytest.approx(ch.learn(lesson.model, OTHER).loss, rel=1e-4)
    assert got["losses"][-1] == {"before": None, "after": None}
    befores = [each["before"] for each in got["losses"][:-1]]
    assert befores == pytest.approx(lesson.losses[:-1].tolist(), rel=1e-3, abs=1e-5)
    assert len(got["weights"]) == len(got["probabilities"]) == 4
    changes = [each["loss_change"] for each in got["weights"]]
    assert changes == sorted(changes)
    assert changes[0] == pytest.approx(effect.weights[0].loss_change, rel=1e-2)
    assert got["expected"] == pytest.approx(effect.expected, rel=1e-2)
    assert got["steps"] == [{"loss": got["loss"], "other": got["other"]}]
    assert ask("/step").json()["other"] is None


def test_several_steps(kind):
    ask, lesson = kind
    got = ask("/step", other=OTHER, steps=3).json()
    losses = [each["loss"] for each in got["steps"]]
    assert len(losses) == 3
    assert got["loss"] == {"before": losses[0]["before"], "after": losses[-1]["after"]}
    assert [each["before"] for each in losses[1:]] == [each["after"] for each in losses[:-1]]
    assert losses[1]["before"] == pytest.approx(lesson.step().loss, rel=1e-2)
    assert all(each["other"]["before"] is not None for each in got["steps"])


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        ("", {"text": ""}, "text_empty", "the text is empty"),
        ("", {"text": "a"}, "one_token", "a text of one token has no next token"),
        ("", {"text": [97] * 200}, "context_length_exceeded", "the limit is 128"),
        ("", {"model": "none"}, "model_not_found", "none"),
        ("/gradient", {"name": "block.0.inputs"}, "site_unknown", "block.0.inputs"),
        ("/gradient", {"name": "block.0.input", "rows": [0, 99]}, "invalid_request", "rows 0 to 99"),
        ("/errors", {"position": 99}, "no_such_number", "position 99 does not exist"),
        ("/chain", {"name": "block.0.input", "row": 0}, "invalid_request", "expected a row and a column"),
        ("/update", {"name": "block.0.input", "row": 0}, "invalid_request", "does not exist"),
        ("/update", {"name": "block.0.W_1", "row": 0, "column": 9999}, "no_such_number", "column 9999"),
        ("/step", {"steps": 21}, "invalid_request", "steps"),
        ("/step", {"other": "a"}, "one_token", "a text of one token has no next token"),
    ],
)
def test_invalid_requests_get_one_line(every_kind, path, body, code, message):
    with every_kind.client() as client:
        response = client.post(f"/api/lesson{path}", json={"model": "modern", "text": TEXT, **body})
    error = response.json()["error"]
    assert response.status_code in (400, 404)
    assert error["code"] == code
    assert message in error["message"]
    assert "\n" not in error["message"]


def test_a_recurrent_network_has_no_lessons(registry_of, running_server):
    small = make_model()
    network = Recurrent(RecurrentConfig("gru", small.config.n_vocab, n_context=128, n_block=1, d_model=8))
    registry = registry_of(gru=LanguageModel(network, small.tokenizer))
    with running_server(registry) as made, made.client() as client:
        response = client.post("/api/lesson", json={"model": "gru", "text": TEXT})
    assert response.status_code == 400
    assert "a lesson" in response.json()["error"]["message"]


def test_the_cache_is_bounded(monkeypatch):
    model, cache = make_model(), LessonCache()
    first = cache.get("small", model, [97, 98])
    assert cache.get("small", model, [97, 98]) is first
    for last in range(100, 106):
        cache.get("small", model, [97, last])
    assert len(cache.lessons) == lesson_cache.MAX_LESSONS
    monkeypatch.setattr(lesson_cache, "MAX_KEPT", model.config.n_parameter)
    cache.get("small", model, [98, 97])
    assert len(cache.lessons) == 1
    cache.discard("other")
    assert len(cache.lessons) == 1
    cache.discard("small")
    assert not cache.lessons
