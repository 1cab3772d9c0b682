"""How far a head moved in a training run, and which texts moved it."""

import shutil
from itertools import pairwise

import pytest

import clearhead as ch
from clearhead.formats.opening import find_snapshot
from clearhead.lessons.head_rows import HEAD_WEIGHTS, head_rows
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, ModelRegistry

SIZES = {"blocks": 1, "heads": 2, "width": 16, "context": 16, "batch": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, story_text):
    """A short run with snapshots, but not of its last step, as in the built-in model."""
    place = tmp_path_factory.mktemp("runs")
    text = place / "text.txt"
    text.write_text(story_text, encoding="utf-8")
    ch.train(text, out=place / "my", steps=6, snapshots=3, progress=False, **SIZES)
    shutil.rmtree(find_snapshot(place / "my", 6))
    return place / "my"


@pytest.fixture(scope="module")
def client(folder, running_server, tmp_path_factory):
    library = ModelLibrary([folder.parent], tmp_path_factory.mktemp("home"), LoadOptions("cpu"))
    with running_server(ModelRegistry([]), library=library) as server, server.client() as client:
        yield client


def ask(client, path, **body):
    return client.post(f"/api/lesson/{path}", json={"run": "my", "block": 0, "head": 1, **body})


def test_the_moves_of_a_head_are_those_between_snapshots_and_to_the_model(client, folder):
    run = ch.runs(folder.parent)["my"]
    steps = sorted({*run.snapshots, run.steps_done})
    assert steps[-1] == 6 not in run.snapshots
    for _ in range(2):  # the second answer comes from the cache
        moves = ask(client, "moves").json()["moves"]
        assert [(each["start"], each["end"]) for each in moves] == list(pairwise(steps))
        for each in moves:
            one = ch.load(folder, step=each["start"])
            two = ch.load(folder, step=None if each["end"] == 6 else each["end"])
            for name in HEAD_WEIGHTS:
                old, new = (model.weight(f"block.0.head.1.{name}") for model in (one, two))
                relative = ((new - old).norm() / old.norm()).item()
                assert each["weights"][name] == pytest.approx(relative, rel=1e-4)


def test_the_texts_of_a_step_are_those_of_its_batch(client, folder):
    run = ch.runs(folder.parent)["my"]
    step = run.snapshots[0] + 1
    lesson, got = run.lesson(step), ask(client, "batch", step=step).json()
    assert got["loss"] == pytest.approx(lesson.loss, rel=1e-3)
    assert got["n_rows"] == len(lesson.ids)
    norms = head_rows(lesson, 0, 1)
    order = norms.argsort(descending=True).tolist()
    for row, each in zip(order, got["rows"], strict=False):
        assert each["gradient"] == pytest.approx(norms[row].item(), rel=1e-2)
    texts = {lesson.tokenizer.decode(ids) for ids in lesson.ids.tolist()}
    assert {each["text"] for each in got["rows"]} <= texts


def test_the_error_for_a_missing_text_says_what_to_do(client, folder):
    text = folder.parent / "text.txt"
    moved = text.rename(folder.parent / "moved.txt")
    try:
        error = ask(client, "batch", step=2).json()["error"]
    finally:
        moved.rename(text)
    assert error["code"] == "run_text_missing"
    assert error["message"].endswith("with snapshots: clearhead train my.txt --snapshots 5")


def test_norms_of_the_parts_sum_to_at_least_that_of_the_whole_gradient(folder):
    lesson = ch.runs(folder.parent)["my"].lesson(1)
    gradients = [lesson.gradient[f"block.0.head.1.{name}"] for name in HEAD_WEIGHTS]
    whole = sum(gradient.double().square().sum() for gradient in gradients).sqrt().item()
    assert whole <= head_rows(lesson, 0, 1).sum().item() * (1 + 1e-6)


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("moves", {"run": "none"}, 404, "run_not_found"),
        ("moves", {"head": 9}, 400, "head_not_found"),
        ("batch", {"step": 99}, 400, "step_not_kept"),
        ("batch", {"step": 1, "block": 9}, 400, "no_such_number"),
    ],
)
def test_invalid_requests_get_one_line(client, path, body, status, code, folder):
    response = ask(client, path, **body)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert str(folder.parent) not in response.text
