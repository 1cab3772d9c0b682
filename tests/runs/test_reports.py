"""TensorBoard and Weights & Biases, read back with their own tools, and how runs handle their failures."""

import json
import math
import re
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.runs.reports import Reports
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run_metrics import read_metrics
from clearhead.runs.saved_run import SavedRun
from clearhead.text.corpus import documents

pytestmark = pytest.mark.slow

SIZES = {
    "blocks": 1,
    "width": 32,
    "heads": 1,
    "context": 32,
    "batch": 4,
    "tokenizer": "char",
    "device": "cpu",
}
NUMBERS = {"loss", "gradient_norm", "learning_rate", "tokens", "validation", "tokens_per_second"}


@pytest.fixture(autouse=True)
def offline(tmp_path, monkeypatch):
    """Run W&B offline and logged out, with all its files in a temporary folder."""
    for name in ("WANDB_API_KEY", "WANDB_PROJECT", "WANDB_RUN_ID", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    yield
    stop_wandb()


def stop_wandb():
    """Wait until W&B has written everything, if it was imported; collecting the tests should not import it."""
    if sys.modules.get("wandb") is not None:
        sys.modules["wandb"].teardown()


def take(folder, text, reports, turns=None, steps=10, breaking=()):
    """Run `turns` iterations, or to the end; until the first rollback, the loss is NaN at the steps in `breaking`."""
    request = TrainingRequest(steps=steps, **SIZES)
    kept = SavedRun.open(folder, list(documents([text])), request, True, checkpoint_every=4)
    trainer = kept.run.trainer
    gather = trainer._forward_backward

    def gather_some(rate):
        loss, norm = gather(rate)
        return math.nan if trainer.step + 1 in breaking and trainer.slowdown == 1 else loss, norm

    trainer._forward_backward = gather_some
    with kept:
        kept.report_to(reports)
        for turn, _ in enumerate(kept, 1):
            if turn == turns:
                return kept.run
        kept.run.model.save(folder, overwrite=True)
        kept.finish()
    return kept.run


def events(folder):
    """Return what TensorBoard shows: steps and values by name."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder / "tensorboard"), size_guidance={"scalars": 0})
    found.Reload()
    return {
        name: [(each.step, each.value) for each in found.Scalars(name)] for name in found.Tags()["scalars"]
    }


def as_events(metrics, name):
    """Return the same from the run's own metrics; for a repeated step, the last value."""
    known = {each["step"]: each[name] for each in metrics if each.get(name) is not None}
    return [(step, pytest.approx(value, rel=1e-6)) for step, value in sorted(known.items())]


def test_tensorboard_shows_every_step(story_file, tmp_path):
    take(tmp_path / "run", story_file, Reports(tensorboard=True))
    shown, metrics = events(tmp_path / "run"), read_metrics(tmp_path / "run")
    assert set(shown) == NUMBERS
    for name in NUMBERS - {"tokens_per_second"}:
        assert shown[name] == as_events(metrics, name)
    assert [step for step, _ in shown["loss"]] == list(range(1, 11))
    assert [step for step, _ in shown["validation"]] == [2, 4, 6, 8, 10]
    assert all(value > 0 for _, value in shown["tokens_per_second"])


def test_tensorboard_drops_steps_that_are_repeated_after_resuming(story_file, tmp_path):
    take(
        tmp_path / "run", story_file, Reports(tensorboard=True), turns=7
    )  # killed: the checkpoint is at step 6
    assert [step for step, _ in events(tmp_path / "run")["loss"]] == list(range(1, 8))
    run = take(tmp_path / "run", story_file, Reports(tensorboard=True))
    shown = events(tmp_path / "run")
    assert [step for step, _ in shown["tokens_per_second"]] == list(range(1, 11))
    for name in ("loss", "validation"):
        assert shown[name] == as_events(read_metrics(tmp_path / "run"), name)
    assert run.notes == []


def test_tensorboard_follows_a_rollback(story_file, tmp_path):
    run = take(tmp_path / "run", story_file, Reports(tensorboard=True), steps=20, breaking={9, 10, 11})
    assert "returned to step 8" in run.notes[0]
    shown, metrics = events(tmp_path / "run"), read_metrics(tmp_path / "run")
    assert len(metrics) == 23
    assert [step for step, _ in shown["learning_rate"]] == list(range(1, 21))
    for name in ("loss", "learning_rate", "gradient_norm"):
        assert shown[name] == as_events(metrics, name)


def test_reports_do_not_change_the_run(story_file, tmp_path):
    take(tmp_path / "plain", story_file, Reports())
    take(tmp_path / "told", story_file, Reports(tensorboard=True, wandb="stories"))
    plain, told = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "plain", tmp_path / "told")
    )
    beside = {path for path in told if path.parts[0] in ("tensorboard", "wandb")}
    assert {path.parts[0] for path in beside} == {"tensorboard", "wandb"}
    assert {path: content for path, content in told.items() if path not in beside} == plain


def records(path):
    """Read the records of a W&B file: 32 KiB blocks of chunks, each with its length and type."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, held = path.read_bytes(), b""
    assert content[:4] == b":W&B"
    at = 7
    while at + 7 <= len(content):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", content[at : at + 7])
        held += content[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a full record, or the last chunk of one
            yield Record.FromString(held)
            held = b""


def wandb_runs(folder):
    """Yield the run, its config and its rows for each file, in order of creation."""
    stop_wandb()
    for path in sorted((folder / "wandb").glob("offline-run-*/run-*.wandb")):
        found = list(records(path))
        run = next(each.run for each in found if each.HasField("run"))
        config = {item.key: json.loads(item.value_json) for item in run.config.update}
        rows = []
        for each in found:
            if each.HasField("history"):
                items = {".".join(i.nested_key) or i.key: i.value_json for i in each.history.item}
                rows.append({key: json.loads(value) for key, value in items.items() if key[0] != "_"})
        yield run, config, rows


def test_wandb_has_every_step_and_the_request(story_file, tmp_path):
    run = take(tmp_path / "run", story_file, Reports(wandb="stories"))
    assert run.notes == []
    [(theirs, config, rows)] = wandb_runs(tmp_path / "run")
    assert (theirs.project, theirs.display_name) == ("stories", "run")
    asked = json.loads((tmp_path / "run" / "run.json").read_text())
    assert config["request"] == asked["request"]
    assert config["plan"] == asked["plan"]
    for row, line in zip(rows, read_metrics(tmp_path / "run"), strict=True):
        assert row.pop("tokens_per_second") > 0
        line.pop("sample", None)  # text samples stay in the folder
        assert row == line


def test_wandb_resumes_under_the_same_id(story_file, tmp_path):
    take(tmp_path / "run", story_file, Reports(wandb="stories"), turns=7)
    stop_wandb()
    take(tmp_path / "run", story_file, Reports(wandb="stories"))
    (first, _, before), (second, _, after) = wandb_runs(tmp_path / "run")
    assert first.run_id == second.run_id == (tmp_path / "run" / "wandb" / "run-id").read_text().strip()
    assert [row["step"] for row in before] == list(range(1, 8))
    assert [row["step"] for row in after] == list(range(7, 11))
    assert before[-1]["loss"] == after[0]["loss"]


def test_disabled_wandb_writes_no_data(story_file, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
    reports = Reports(wandb="stories")
    (wandb_reporter,) = reports.reporters
    assert take(tmp_path / "run", story_file, reports).notes == []
    assert wandb_reporter.place == "disabled"
    assert [path.name for path in (tmp_path / "run" / "wandb").iterdir()] == ["run-id"]


def test_run_without_steps_leaves_no_report(story_file, tmp_path):
    texts, request = list(documents([story_file])), TrainingRequest(steps=2, **SIZES)
    with SavedRun.open(tmp_path / "run", texts, request) as kept:
        kept.report_to(Reports(tensorboard=True, wandb="stories"))
        assert (tmp_path / "run" / "wandb").exists()
    assert not (tmp_path / "run").exists()


def test_wandb_without_login_raises(story_file, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "online")
    with pytest.raises(UserError, match=r"^W&B failed \(No API key.*WANDB_MODE=offline") as told:
        take(tmp_path / "run", story_file, Reports(wandb="stories"))
    assert "\n" not in str(told.value)
    assert not (tmp_path / "run").exists()


def test_unreachable_wandb_does_not_stop_the_run(story_file, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789" * 4)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_INIT_TIMEOUT", "2")
    run = take(tmp_path / "run", story_file, Reports(wandb="stories"))
    [note] = run.notes
    assert note.startswith("W&B failed (")
    assert note.endswith("connection refused); training continues without it")
    assert "\n" not in note
    assert len(read_metrics(tmp_path / "run")) == 10


class Answers(BaseHTTPRequestHandler):
    """The part of W&B's server that a run needs to start."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        project = {"id": "p", "name": "stories", "entity": {"id": "e", "name": "me"}}
        bucket = {"id": "b", "name": "known", "displayName": "run", "project": project, "historyLineCount": 0}
        answers = {
            "RunResumeStatus": {"model": {**project, "bucket": None}},
            "UpsertBucket": {"upsertBucket": {"bucket": bucket, "inserted": True}},
        }
        known = asked.get("operationName") in answers
        content = json.dumps({"data": answers[asked["operationName"]] if known else None}).encode()
        self.send_response(200 if known else 503)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def test_lost_connection_is_reported_at_the_end(story_file, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "0123456789" * 4)
    monkeypatch.setattr("clearhead.runs.reports.PATIENCE", 2)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("WANDB_BASE_URL", host)
        reports = Reports(wandb="stories")
        begin = reports.begin

        def begin_and_leave(folder):
            notes = begin(folder)
            assert reports.reporters[0].place == f"{host}/me/stories/runs/known"
            server.shutdown()
            server.server_close()
            return notes

        reports.begin = begin_and_leave
        run = take(tmp_path / "run", story_file, reports)
    assert len(read_metrics(tmp_path / "run")) == 10
    assert run.notes == ["W&B failed (Timed out finishing run.); what it recorded is in its folder"]


@pytest.mark.parametrize("project", ["", "a/b"])
def test_invalid_project_is_rejected(project, story_file, tmp_path):
    with pytest.raises(UserError, match="project"):
        take(tmp_path / "run", story_file, Reports(wandb=project))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("asked", [{"tensorboard": True}, {"wandb": "stories"}])
def test_missing_package_raises(asked, story_file, tmp_path, monkeypatch):
    [package] = asked
    monkeypatch.setitem(sys.modules, package, None)
    message = f"`{package}` needs {package}, which is not installed: pip install 'clearhead[{package}]'"
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        clearhead.train(story_file, tmp_path / "run", steps=2, **SIZES, **asked)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("asked", [{"tensorboard": True}, {"wandb": "stories"}])
def test_reports_require_a_folder(asked, story_file):
    with pytest.raises(UserError, match="give its folder with out="):
        clearhead.train(story_file, steps=2, **SIZES, **asked)


def test_full_disk_is_reported_once(disk, story_file, tmp_path):
    small = disk("64k")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "tensorboard").symlink_to(small)
    (small / "filled").write_bytes(b"\0" * 60 * 1024)  # leaves one page free
    run = take(folder, story_file, Reports(tensorboard=True), steps=40)
    assert run.notes == ["TensorBoard failed (No space left on device); training continues without it"]
    assert run.trainer.step == 40
    shown = [step for step, _ in events(folder)["loss"]]
    assert shown == list(range(1, len(shown) + 1))
    assert 3 < len(shown) < 40


def test_reporter_failing_at_start_does_not_stop_the_run(story_file, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "tensorboard").write_text("in the way")
    with pytest.warns(
        UserWarning, match=r"^TensorBoard failed \(File exists\); training continues without it$"
    ):
        clearhead.train(story_file, tmp_path / "run", steps=3, tensorboard=True, **SIZES)
    assert len(read_metrics(tmp_path / "run")) == 3
