"""A flipped bit in any file of a run is noticed or repaired, or it changes nothing that is read."""

import faulthandler
import hashlib
import json
import math
import os
import random
import shutil
import sys
import warnings

import pytest
import torch

import clearhead
from clearhead.errors import UserError
from clearhead.files import read_sealed, seal
from clearhead.runs.following import Follower
from clearhead.runs.listing import describe_run, list_runs
from clearhead.runs.plan import Plan
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run_folder import RunFolder
from clearhead.runs.run_metrics import read_metrics
from clearhead.runs.saved_run import SavedRun
from clearhead.text.corpus import documents

SIZES = {
    "blocks": 1,
    "width": 16,
    "heads": 1,
    "context": 16,
    "batch": 2,
    "tokenizer": "char",
    "device": "cpu",
}
REQUEST = TrainingRequest(steps=6, **SIZES)
FLIPS = 3  # in each file
UNREAD = ("loss.svg",)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("The chicken didn't cross the road because it was too tired.\n" * 20)
    return list(documents([path]))


def train(folder, texts, stop):
    with SavedRun.open(folder / "run", texts, REQUEST, cache=folder / "tokens", snapshots=2) as kept:
        for progress in kept:
            if progress.record.step == stop:
                kept.save()
                return folder
        kept.run.model.save(kept.folder.path, overwrite=True)
        kept.finish()
    return folder


@pytest.fixture(scope="module")
def killed(texts, tmp_path_factory):
    return train(tmp_path_factory.mktemp("killed"), texts, 4)


@pytest.fixture(scope="module")
def finished(texts, tmp_path_factory):
    return train(tmp_path_factory.mktemp("finished"), texts, None)


def digest(*parts):
    hashed = hashlib.sha256()
    for part in parts:
        tensors = part.items() if isinstance(part, dict) else ()
        for name, value in tensors:
            hashed.update(
                name.encode() + (value.detach().numpy().tobytes() if torch.is_tensor(value) else b"")
            )
        hashed.update(repr(part).encode() if not tensors else b"")
    return hashed.hexdigest()


def resume(folder, texts):
    """Return what the rest of the training depends on, and the notes."""
    with SavedRun.open(folder / "run", texts, REQUEST, True, cache=folder / "tokens") as kept:
        run = kept.run
        state = digest(run.trainer.tensors(), run.tokens[:].tolist(), run.validation[:].tolist())
        held_out = kept.folder.find_held_out(run.tokenizer, run.group)
        rest = (
            run.tokenizer.sha256,
            run.plan,
            run.trainer.step,
            run.good.step,
            held_out.validation[:].tolist(),
        )
        metrics = [each["loss"] for each in read_metrics(folder / "run")]
        return [state, rest, metrics], [note for note in run.notes if "damaged" in note]


def read(folder, texts):
    """Return what is read from a finished run, and the notes."""
    run, seen = folder / "run", []
    for step in (None, 1, 6):
        model = clearhead.load(run, "cpu", step=step)
        seen += [
            digest(model.network.state_dict()),
            model.tokenizer.sha256,
            model.tokenizer.end_ids,
            model.config,
        ]
        seen.append(model.training)
    listed = describe_run(run)
    seen += [listed, read_metrics(run), RunFolder(run, held=False).settings()]
    with SavedRun.open(
        run, texts, TrainingRequest(steps=2, **SIZES), True, cache=folder / "tokens", extend=True
    ) as kept:
        seen += [digest(kept.run.trainer.tensors()), kept.run.tokens[:].tolist()]
        return seen, [note for note in kept.run.notes if "damaged" in note]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "look"), [("killed", resume), ("finished", read)])
def test_flipped_bits_are_noticed_repaired_or_harmless(kind, look, texts, tmp_path, request):
    sound = request.getfixturevalue(kind)
    place = tmp_path / "copy"
    expected, notes = look(shutil.copytree(sound, place), texts)
    assert not notes
    paths = [path.relative_to(sound) for path in sorted(sound.rglob("*")) if path.is_file()]
    counts = {}
    for path in paths:
        if path.name in UNREAD or path.name == ".lock":
            continue
        rng = random.Random(str(path))
        for _ in range(FLIPS):
            shutil.rmtree(place)
            shutil.copytree(sound, place)
            content = bytearray((place / path).read_bytes())
            bit = rng.randrange(8 * len(content))
            content[bit // 8] ^= 1 << bit % 8
            (place / path).write_bytes(content)
            try:
                found, notes = look(place, texts)
            except UserError:
                outcome = "refused"
            else:
                outcome = "noted" if notes else "repaired or harmless"
                assert notes or found == expected, (path, bit)
            counts[path.name, outcome] = counts.get((path.name, outcome), 0) + 1
    print(*sorted(counts.items()), sep="\n")  # noqa: T201 (with -s)
    assert ("tokens-00000.npy", "repaired or harmless") in counts


@pytest.fixture
def bounded():
    """End the process, with a traceback, if it hangs waiting for a pipe or reading an endless device."""
    with open(sys.__stderr__.fileno(), "w", closefd=False) as log:
        faulthandler.dump_traceback_later(600, exit=True, file=log)
        yield
        faulthandler.cancel_dump_traceback_later()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in its file system")
@pytest.mark.parametrize("planted", ["pipe", "device"])
@pytest.mark.parametrize(("kind", "look"), [("killed", resume), ("finished", read)])
def test_pipe_or_device_in_place_of_any_file_is_refused_or_repaired(
    kind, look, planted, texts, tmp_path, request, bounded
):
    sound = request.getfixturevalue(kind)
    place = tmp_path / "copy"
    outcomes = set()
    for path in sorted(path.relative_to(sound) for path in sound.rglob("*") if path.is_file()):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(sound, place)
        plant(place / path, planted)
        for work in (look, list_and_follow):
            try:
                work(place, texts)
            except UserError:
                outcomes.add("refused")
            else:
                outcomes.add("repaired or not read")
    assert outcomes == {"refused", "repaired or not read"}


def plant(path, planted):
    path.unlink()
    if planted == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


def list_and_follow(folder, _):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "skipped: ")
        list_runs(folder)
    follower = Follower(folder / "run")
    follower.look()
    return follower.steps


@pytest.mark.parametrize(
    "content",
    [b"[" * 200_000, b'{"step": 1, "loss": 1' + b"0" * 400 + b"}\n", b'{"step": 1' + b"0" * 400 + b"}\n"],
)
def test_metrics_that_no_run_writes_are_left_out(content, finished, tmp_path):
    run = shutil.copytree(finished / "run", tmp_path / "run")
    settings = read_sealed(run / "run.json")
    (run / "run.json").write_text(json.dumps(settings | {"metrics_sha256": None}))
    (run / "metrics.jsonl").write_bytes(content + b"\n")
    assert describe_run(run).steps_done == 0
    assert read_metrics(run) == list_and_follow(tmp_path, None) == []


def test_enormous_metrics_are_refused_unread(finished, tmp_path):
    run = shutil.copytree(finished / "run", tmp_path / "run")
    with (run / "metrics.jsonl").open("r+b") as file:
        file.truncate(20 * 2**30)  # sparse
    for work in (describe_run, read_metrics):
        with pytest.raises(UserError, match="expected at most"):
            work(run)
    assert list_and_follow(tmp_path, None) == []


@pytest.mark.parametrize("changes", [{"n_vocab": 2**24}, {"n_block": 1000}, {"d_hidden": 96}])
def test_plan_of_another_network_is_refused_before_it_is_created(changes, finished, texts, tmp_path):
    run = shutil.copytree(finished, tmp_path / "copy") / "run"
    settings = json.loads((run / "run.json").read_text())
    settings["plan"]["config"] |= changes
    (run / "run.json").write_text(json.dumps(seal(settings)))
    more = TrainingRequest(steps=2, **SIZES)
    with pytest.raises(UserError, match="does not match the network in"):
        SavedRun.open(run, texts, more, True, cache=tmp_path / "copy" / "tokens", extend=True)


@pytest.mark.parametrize(("name", "value"), [("held_out_tokens", 0), ("validation_tokens", math.inf)])
def test_impossible_number_in_run_json_is_one_line(name, value, finished, tmp_path):
    run = shutil.copytree(finished, tmp_path / "copy") / "run"
    (run / "run.json").write_text(json.dumps(read_sealed(run / "run.json") | {name: value}))
    with pytest.raises(UserError, match=r"run\.json was written by a different version, or is damaged"):
        describe_run(run)


def test_impossible_number_in_a_plan_is_one_line(finished):
    plan = read_sealed(finished / "run" / "run.json")["plan"]
    with pytest.raises(UserError, match="the plan of the run is damaged"):
        Plan.from_json(plan | {"context": math.inf})
