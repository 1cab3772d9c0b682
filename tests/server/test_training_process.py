"""Runs that the server starts, monitors, stops and resumes, in real processes."""

import json
import os
import shutil
import signal
import time

import jsonschema
import numpy as np
import pytest
from filelock import FileLock

from clearhead.errors import UserError
from clearhead.files import seal
from clearhead.language_model import load
from clearhead.runs.run_metrics import read_metrics
from clearhead.server.app import make_api
from clearhead.server.limits import Limits
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_loader import ModelLibrary
from clearhead.server.model_registry import LoadOptions, ModelRegistry
from clearhead.server.training_process import ERROR_FILE, LOG_FILE, TrainingManager, _read_error
from tests import event_loop
from tests.serving import make_finished

SMALL = {"blocks": 1, "heads": 2, "width": 16, "context": 32}
LONG = 100_000  # steps; more than any test waits for
TEXT = "Once upon a time"


@pytest.fixture
def place(tmp_path):
    return tmp_path / "secret-place" / "runs"


@pytest.fixture
def serve(place, running_server, tmp_path):
    """Start a server with an empty registry that trains in the `place` folder."""
    made = []

    def run():
        made.append(ModelRegistry([]))
        return running_server(
            made[-1], library=ModelLibrary([place], tmp_path / "home", LoadOptions("cpu", slots=1))
        )

    yield run
    for registry in made:
        registry.close(cancel=True)


@pytest.fixture
def server(serve):
    with serve() as made:
        yield made


def start(client, story_text, name="my", **more):
    body = {"name": name, "text": story_text, "text_name": "My tales.txt", **SMALL, **more}
    return client.post("/api/train", json=body)


def find(client, name="my"):
    return next((each for each in client.get("/api/runs").json()["runs"] if each["name"] == name), None)


def metrics(client, name="my", after=0):
    return client.get(f"/api/runs/{name}/metrics", params={"after": after}).json()


def wait_for_step(server, client, steps, name="my"):
    server.until(lambda: find(client, name)["steps_done"] >= steps, 300)


def wait_until_idle(server, client):
    server.until(lambda: client.get("/api/runs").json()["now"] is None, 300)


@pytest.mark.slow
def test_run_trains_to_completion(client, server, place, story_text):
    listed = client.get("/api/runs").json()
    assert listed == {"runs": [], "can_start": True, "now": None}
    started = start(client, story_text, steps=60, snapshots=5)
    assert (started.status_code, started.json()["now"]) == (200, "my")
    assert (find(client)["state"], find(client)["own"]) == ("starting", True)
    seen, last, speeds = [], 0, []
    end = time.monotonic() + 300
    while client.get("/api/runs").json()["now"] is not None:
        assert time.monotonic() < end
        told = metrics(client, after=last)
        if told.get("steps"):
            seen += told["steps"]
            last = seen[-1]["step"]
            speeds.append(told["tokens_per_second"])
        time.sleep(0.05)
    seen += metrics(client, after=last)["steps"]
    kept = read_metrics(place / "my")
    assert [each["step"] for each in seen] == [each["step"] for each in kept] == list(range(1, 61))
    for name in ("loss", "learning_rate", "gradient_norm", "tokens", "validation", "sample"):
        assert [each[name] for each in seen] == [each.get(name) for each in kept], name
    assert seen[0]["smoothed"] == seen[0]["loss"]
    assert seen[4]["smoothed"] == pytest.approx(0.2 * seen[3]["loss"] + 0.8 * seen[4]["loss"])
    assert sum(each["sample"] is not None for each in seen) >= 3
    assert any(speed is not None and speed > 0 for speed in speeds)
    run = find(client)
    assert (run["state"], run["steps_done"], run["steps_planned"], run["error"]) == ("finished", 60, 60, None)
    assert (run["texts"], run["model"], run["preset"]) == (["My-tales.txt"], "my", "modern")
    assert run["tokens"] == kept[-1]["tokens"]
    assert (place / "my" / "My-tales.txt").read_text(encoding="utf-8") == story_text
    assert metrics(client)["tokens_per_second"] is None
    assert "secret-place" not in client.get("/api/runs").text
    check_snapshots(client, place, run["snapshots"])


def check_snapshots(client, place, steps):
    """Each snapshot can be opened by name, matches what Python loads, and is not listed as a model."""
    assert steps[0] == 1
    assert steps[-1] == 60
    for step in steps[:2]:
        name = f"my@{step}"
        opened = client.post("/api/open", json={"model": name}).json()
        assert (opened["name"], opened["state"], opened["origin"]) == (name, "loaded", "run")
        body = {"model": name, "text": TEXT, "site": "block.0.head.1.weights"}
        raw = client.post("/api/site", json=body).content
        mine = load(place / "my", "cpu", step=step).inspect(TEXT)["block.0.head.1.weights"]
        given = np.frombuffer(raw, dtype="<f4").reshape(mine.shape)
        assert np.abs(given - mine.numpy()).max() < 1e-6
    assert [each["name"] for each in client.get("/api/models").json()["models"]] == ["my"]


def test_unknown_snapshots_are_not_found(client, server, place, model_folder):
    make_finished(place / "my", model_folder)
    for name in ("my@", "my@x", "my@7", "my@-1", "other@1", "@1", "my@1@1", "../my@1", "my@1/"):
        rejected = client.post("/api/open", json={"model": name})
        assert (rejected.status_code, rejected.json()["error"]["code"]) == (404, "model_not_found"), name


def test_metrics_of_long_runs_are_downsampled(client, server, place, model_folder):
    make_finished(place / "my", model_folder, steps=10_000)
    told = [each["step"] for each in metrics(client)["steps"]]
    assert len(told) == 2000
    assert (told[0], told[-1]) == (1, 10_000)
    assert max(np.diff(told)) <= 6
    assert [each["step"] for each in metrics(client, after=9990)["steps"]] == list(range(9991, 10_001))
    assert metrics(client, after=10_000)["steps"] == []


def test_number_of_loaded_snapshots_is_limited(client, server, place, model_folder):
    make_finished(place / "my", model_folder)
    for step in range(2, 12):
        shutil.copytree(model_folder, place / "my" / "snapshots" / f"step-{step:09d}")
    for step in range(1, 12):
        assert client.post("/api/open", json={"model": f"my@{step}"}).status_code == 200
    loaded = [each["id"] for each in client.get("/v1/models").json()["data"]]
    assert loaded == [f"my@{step}" for step in range(4, 12)]
    assert client.post("/api/open", json={"model": "my@1"}).status_code == 200


@pytest.mark.slow
def test_stop_and_resume(client, server, place, story_text):
    start(client, story_text, steps=LONG)
    wait_for_step(server, client, 5)
    again = start(client, story_text, "other", steps=5)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_training")
    assert client.post("/api/runs/my/resume").status_code == 409
    assert client.post("/api/runs/my/stop").json()["runs"][0]["state"] in ("stopping", "stopped")
    wait_until_idle(server, client)
    stopped = find(client)
    assert (stopped["state"], stopped["resumable"], stopped["error"]) == ("stopped", True, None)
    assert (place / "my" / "checkpoints").is_dir()
    assert not stopped["extendable"]
    rejected = client.post("/api/runs/my/resume", json={"minutes": 1})
    assert (rejected.status_code, rejected.json()["error"]["code"]) == (409, "run_is_not_finished")
    assert client.post("/api/runs/my/stop").status_code == 200  # already stopped, so this has no effect
    client.get("/api/models")
    client.post("/api/open", json={"model": "my"})
    body = {"model": "my", "text": TEXT, "site": "logits"}
    before = client.post("/api/site", json=body).content
    assert client.post("/api/runs/my/resume").json()["now"] == "my"
    wait_for_step(server, client, stopped["steps_done"] + 5)
    steps = [each["step"] for each in metrics(client)["steps"]]
    assert steps == list(range(1, len(steps) + 1))
    client.post("/api/runs/my/stop")
    wait_until_idle(server, client)
    # The model has changed, so it must be opened again.
    server.until(lambda: client.post("/api/site", json=body).status_code == 503)
    client.post("/api/open", json={"model": "my"})
    assert client.post("/api/site", json=body).content != before


@pytest.mark.slow
def test_finished_run_is_extended(client, server, place, story_text):
    start(client, story_text, "short", steps=20)
    wait_until_idle(server, client)
    assert (find(client, "short")["state"], find(client, "short")["extendable"]) == ("finished", True)
    for wrong in ({"minutes": 0}, {"minutes": 1e6}, {"minutes": "1"}, {"hours": 1}):
        assert client.post("/api/runs/short/resume", json=wrong).status_code == 400
    assert client.post("/api/runs/short/resume", json={"minutes": 0.05}).json()["now"] == "short"
    assert (find(client, "short")["state"], find(client, "short")["extendable"]) == ("running", False)
    wait_until_idle(server, client)
    run = find(client, "short")
    assert (run["state"], run["minutes"], run["error"]) == ("finished", 0.05, None)
    assert run["steps_done"] > 20
    steps = [each["step"] for each in metrics(client, "short")["steps"]]
    assert steps == list(range(1, run["steps_done"] + 1))
    assert run["extendable"]
    (place / "short" / ".lock").touch()  # as if the process had been killed before exiting
    client.post("/api/runs/short/resume", json={"minutes": 0.05})  # by the same time once more
    wait_until_idle(server, client)
    assert find(client, "short")["steps_done"] > run["steps_done"]


@pytest.mark.slow
def test_server_shutdown_stops_and_saves_the_run(serve, place, story_text):
    with serve() as server, server.client() as client:
        start(client, story_text, steps=LONG)
        wait_for_step(server, client, 5)
        (line,) = (each for each in server.log if each.startswith("training my"))
        process = int(line.rpartition(" ")[2])
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    assert list((place / "my" / "checkpoints").iterdir())
    assert not (place / "my" / ".lock").exists()
    with serve() as server, server.client() as client:
        assert (find(client)["state"], find(client)["resumable"]) == ("stopped", True)


@pytest.mark.slow
def test_killed_run_is_reported_as_stopped_with_an_error(client, server, place, story_text):
    start(client, story_text, steps=LONG)
    wait_for_step(server, client, 2)
    (line,) = (each for each in server.log if each.startswith("training my"))
    os.kill(int(line.rpartition(" ")[2]), signal.SIGKILL)
    wait_until_idle(server, client)
    run = find(client)
    assert run["state"] == "stopped"
    assert run["error"]


@pytest.mark.slow
def test_failed_start_reports_an_error_and_leaves_no_folder(client, server, place):
    assert start(client, "too short", steps=5).status_code == 200
    wait_until_idle(server, client)
    run = find(client)
    assert run["state"] == "failed"
    error = run["error"]
    assert "text" in error["message"]
    assert "secret-place" not in str(error)
    assert (error["code"], error["values"]) == (
        "training_text_short",
        {"count": 9, "context": 32, "least": 64},
    )
    assert not (place / "my").exists()  # so the name is available again


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in its file system")
def test_pipe_in_place_of_a_run_s_files_is_not_read(tmp_path):
    for name in (LOG_FILE, ERROR_FILE):
        os.mkfifo(tmp_path / name)
    assert _read_error(tmp_path).message == "the process exited without output"
    training = TrainingManager.__new__(TrainingManager)
    training.errors, training.device = {}, None
    with pytest.raises(UserError, match="is a pipe or device"):
        event_loop.run(training._launch("my", tmp_path, ["train"]))


WRONG_REQUESTS = [
    {"name": "../other"},
    {"name": "a/b"},
    {"name": ""},
    {"name": ".hidden"},
    {"name": "my@1"},
    {"name": "--out"},
    {"name": "a" * 65},
    {"text": ""},
    {"minutes": 0},
    {"minutes": 1e6},
    {"steps": 0},
    {"steps": 5, "minutes": 1},
    {"preset": "--out=/etc"},
    {"snapshots": 101},
    {"blocks": 0},
    {"out": "/etc"},
    {"text": "\ud800 alone"},
]


def test_invalid_requests_start_no_run(client, server, place):
    for wrong in WRONG_REQUESTS:
        body = json.dumps({"name": "my", "text": "a b c", **wrong})
        rejected = client.post("/api/train", content=body, headers={"Content-Type": "application/json"})
        assert rejected.status_code == 400, wrong
        assert len(rejected.json()["error"]["message"]) > 5
        assert client.get("/api/runs").json()["runs"] == [], wrong
        assert not place.exists() or list(place.iterdir()) == [], wrong


def test_taken_and_unknown_names_are_rejected(client, server, place, model_folder):
    make_finished(place / "my", model_folder)
    taken = start(client, "a b c")
    assert (taken.status_code, taken.json()["error"]["code"]) == (409, "name_taken")
    finished = client.post("/api/runs/my/resume")
    assert (finished.status_code, finished.json()["error"]["code"]) == (409, "run_is_finished")
    without_state = client.post("/api/runs/my/resume", json={"minutes": 1})
    assert (without_state.status_code, without_state.json()["error"]["code"]) == (
        409,
        "run_is_not_extendable",
    )
    assert not find(client)["extendable"]
    for route in ("stop", "resume"):
        for name in ("other", "..", "%2e%2e", "my%2f", "my\\"):
            assert client.post(f"/api/runs/{name}/{route}").status_code in (404, 405), name
    assert client.get("/api/runs/other/metrics").status_code == 404
    assert (place / "my" / "run.json").exists()


def make_teachers(folder, model_folder):
    """Write the folders of two teachers, of which the second was interrupted."""
    for number in ("1", "2"):
        make_finished(folder / "teachers" / number, model_folder)
    (folder / "teachers" / "plan.json").write_text('{"format": 1, "count": 2}')
    last = folder / "teachers" / "2" / "run.json"
    last.write_text(json.dumps(seal(json.loads(last.read_text()) | {"finished": False})))


def test_teachers_and_student_are_marked(client, server, place, model_folder):
    make_teachers(place / "my", model_folder)
    make_finished(place / "student", model_folder)
    (place / "student" / "run.json").rename(place / "my" / "run.json")  # the student has started
    settings = json.loads((place / "my" / "run.json").read_text())
    settings["request"]["teachers"] = 2
    settings["held_out_tokens"] = 2 * settings["validation_tokens"]
    (place / "my" / "run.json").write_text(json.dumps(seal(settings)))
    student, second = find(client), find(client, "my-teacher-2")
    assert (student["validated_share"], second["validated_share"]) == (0.5, 1)
    assert [student[name] for name in ("teachers", "teacher", "student")] == [2, None, None]
    assert [second[name] for name in ("teachers", "teacher", "student")] == [2, 2, "my"]
    assert (second["state"], second["resumable"], second["extendable"]) == ("stopped", False, False)
    assert len(metrics(client, "my-teacher-2")["steps"]) == 3
    for body in (None, {"minutes": 1}):
        refused = client.post("/api/runs/my-teacher-2/resume", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run_is_a_teacher")
        assert refused.json()["error"]["values"] == {"name": "my-teacher-2", "student": "my"}


def test_run_whose_teachers_are_not_all_trained_can_be_resumed(
    client, server, place, model_folder, monkeypatch
):
    make_teachers(place / "my", model_folder)
    pending = find(client)
    assert (pending["state"], pending["teachers"], pending["resumable"]) == ("stopped", 2, True)
    assert metrics(client) == {"run": pending, "steps": [], "tokens_per_second": None}
    assert find(client, "my-teacher-1")["student"] == "my"
    refused = client.post("/api/runs/my/resume", json={"minutes": 1})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "run_is_not_finished")
    launched = []

    async def launch(_self, *given, **_more):
        launched.append(given)

    monkeypatch.setattr(TrainingManager, "_launch", launch)
    assert client.post("/api/runs/my/resume").status_code == 200
    command = ["train", "my.txt", "--out", str(place / "my"), "--resume"]
    assert launched == [("my", place / "my", command)]
    with FileLock(place / "my" / "teachers" / "2" / ".lock"):  # trained by another process
        assert (find(client)["state"], find(client)["resumable"]) == ("starting", False)
        refused = client.post("/api/runs/my/resume")
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "already_training")


def test_only_the_train_route_accepts_large_bodies(serve, place, tmp_path, running_server):
    long = {"name": "my", "text": "a" * 3_000_000, "preset": "none"}
    with serve() as server, server.client() as client:
        assert client.post("/api/train", json=long).status_code == 400
        assert client.post("/api/open", json={"model": "a" * 3_000_000}).status_code == 413
    library = ModelLibrary([place], tmp_path / "home", LoadOptions("cpu"))
    with (
        running_server(ModelRegistry([]), Limits(max_text=2_500_000), library=library) as server,
        server.client() as client,
    ):
        assert client.post("/api/train", json=long).status_code == 413
    with running_server(ModelRegistry([])) as server, server.client() as client:
        assert client.post("/api/train", json=long).status_code == 413


def test_runs_are_disabled_without_a_library(registry, running_server, story_text, tmp_path):
    for library in (None, ModelLibrary([], tmp_path / "home", LoadOptions("cpu"))):
        with running_server(registry, library=library) as server, server.client() as client:
            assert client.get("/api/runs").json() == {"runs": [], "can_start": False, "now": None}
            rejected = start(client, story_text)
            assert (rejected.status_code, rejected.json()["error"]["code"]) == (404, "cannot_be_trained")
            assert client.post("/api/runs/my/resume").status_code == 404
            assert client.post("/api/open", json={"model": "my@1"}).status_code == 404


@pytest.mark.slow
def test_responses_conform_to_the_openapi_document(client, server, place, model_folder, story_text):
    make_finished(place / "done", model_folder)
    document = make_api(ModelRegistry([]), ServerMetrics(ModelRegistry([]))).openapi()

    def check(method, path, name="", **options):
        schema = document["paths"][path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        response = client.request(method, path.replace("{name}", name), **options)
        assert response.status_code == 200, response.text
        jsonschema.validate(response.json(), {**schema, "components": document["components"]})

    check("get", "/api/runs")
    check("get", "/api/runs/{name}/metrics", "done")
    body = {"name": "my", "text": story_text, "text_name": "My tales.txt", **SMALL, "steps": LONG}
    check("post", "/api/train", json=body)
    wait_for_step(server, client, 3)
    check("get", "/api/runs/{name}/metrics", "my")
    check("post", "/api/runs/{name}/stop", "my")
    wait_until_idle(server, client)
    done = find(client, "my")["steps_done"]
    check("post", "/api/runs/{name}/resume", "my")
    wait_for_step(server, client, done + 1)
    check("post", "/api/runs/{name}/stop", "my")
    wait_until_idle(server, client)
