"""Runs in separate processes that are killed, signaled, corrupted or out of disk space, and then resumed."""

import os
import shutil
import signal
import time

import pytest

from clearhead.language_model import load
from clearhead.runs.checkpoint import is_whole
from clearhead.runs.run_metrics import read_metrics

if not hasattr(os, "fork"):
    pytest.skip("these tests fork processes", allow_module_level=True)

from bench.faults import CHECKPOINT_EVERY, TEXT, InterruptedRun, make_command, read_files
from tools.fault_injection import Commands, Fault

pytestmark = pytest.mark.slow

WHEN = ("before", "torn", "after")
A_SAVE = "mkdir checkpoints/.step"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    (folder / "text.txt").write_text(TEXT)
    return folder


@pytest.fixture(scope="module")
def commands(place):
    (place / "temporary").mkdir()
    environment = {"CLEARHEAD_HOME": str(place / "home"), "TMPDIR": str(place / "temporary")}
    with Commands(place, **environment) as started:
        yield started


@pytest.fixture(scope="module")
def whole(commands, place):
    """The files of an uninterrupted run."""
    ended = commands.run(*make_command("whole"))
    assert ended.code == 0, ended.err
    assert len(read_metrics(place / "whole")) == 30
    return read_files(place / "whole")


@pytest.fixture
def broken(commands, place, whole, request):
    """A run to interrupt; at the end, it must equal the uninterrupted one and have lost few steps."""
    run = InterruptedRun(commands, place / request.node.name.replace("[", "-").rstrip("]"))
    yield run
    ended = run.resume()
    assert ended.code == 0, ended.err
    assert read_files(run.folder) == whole
    assert run.max_lost <= CHECKPOINT_EVERY


def kill(run, at, since="", when=None):
    ended = run.resume(Fault(at, when or WHEN[at % 3], since=since))
    assert ended.code == -signal.SIGKILL, (at, ended)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def newest(run):
    return max((run.folder / "checkpoints").glob("step-*"))


def test_killed_at_startup(broken):
    for at in range(0, 18, 3):
        kill(broken, at)


@pytest.mark.parametrize("stride", [5, 1])
def test_killed_during_any_operation_of_a_checkpoint(broken, stride):
    """Each process resumes from the last, and is killed a few operations further into its first save."""
    for at in range(0, 24, stride):
        kill(broken, at, A_SAVE)


def test_killed_while_the_best_model_is_replaced(broken):
    for at in (0, 1, 2, 5):
        kill(broken, at, "/best", "after")
        if at:
            assert load(broken.folder / "best", "cpu").generate(tokens=1) is not None


def test_killed_while_saving_the_model_and_finishing(broken):
    for at in range(0, 40, 8):
        kill(broken, at, f"unlink {broken.folder.name}/config.json")
    kill(broken, 3, "rename checkpoints/step-000000027")  # finished, half of a checkpoint deleted


def test_killed_at_arbitrary_times(broken):
    for seconds in (0.1, 0.25, 0.4):
        broken.resume(seconds=seconds)


def test_two_resumes_in_one_epoch(broken):
    kill(broken, 0, "mkdir checkpoints/.step-000000006")  # an epoch is eight steps
    kill(broken, 1, "mkdir checkpoints/.step-000000006")
    kill(broken, 0, f"write {broken.folder.name}/metrics", "torn")
    assert not (broken.folder / "metrics.jsonl").read_bytes().endswith(b"\n")


@pytest.mark.parametrize("name", ["tensors.safetensors", "state.json", "manifest.json"])
def test_flipped_bit_in_the_newest_checkpoint(name, broken, whole):
    kill(broken, 0, "mkdir checkpoints/.step-000000009")
    flip(newest(broken) / name)
    ended = broken.resume()
    assert "resuming after step 3\n" in ended.err
    assert (
        "the checkpoint of step 6 is damaged (the disk may be failing): resuming from that of step 3"
        in ended.err
    )
    broken.max_lost = 0  # these steps were lost to the corruption
    assert read_files(broken.folder) == whole


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_during_a_save(number, broken):
    ended = broken.resume(Fault(5, number=number, since=A_SAVE))
    assert ended.code == 0
    assert "stopped after 3 steps; run the same command with --resume to continue" in ended.err
    assert load(broken.folder, "cpu").training["steps_done"] == 3
    ended = broken.resume(Fault(1, number=number, since="metrics.jsonl"))
    assert "resuming after step 3" in ended.err
    assert "stopped after 4 steps" in ended.err
    assert newest(broken).name == "step-000000004"


def test_finished_run_is_reported_and_unchanged(commands, whole, place):
    ended = commands.run(*make_command("whole"))
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == (
        "the run in whole is finished, and a repeated command does not extend it: give another --minutes or --steps, "
        "or try: clearhead generate whole\n"
    )
    assert read_files(place / "whole") == whole


def test_only_one_process_trains_and_its_death_unlocks(broken, commands):
    paused = Fault(0, "after", number=signal.SIGSTOP, since="metrics.jsonl")
    first = commands.start(*broken.command, fault=paused)
    while not (broken.folder / "metrics.jsonl").exists():
        time.sleep(0.01)
    second = commands.run(*broken.command)
    assert second.code == 2
    assert second.err.startswith("clearhead: another run is training in")
    first.signal(signal.SIGKILL)
    assert first.wait().code == -signal.SIGKILL


def test_full_disk_does_not_stop_training(disk, commands, place, whole):
    """Training continues, the old checkpoint stays, one warning is printed, and the model is saved elsewhere."""
    small = disk("3m")
    folder, filled = small / "run", small / "filled"
    (small / "text.txt").write_text(TEXT)
    # During the third save of a checkpoint, after its folder is created.
    fault = Fault(1, since="mkdir checkpoints/.step-000000009", fill=str(filled))
    ended = commands.start(*make_command("run"), fault=fault, folder=small).wait()
    assert ended.code == 0, ended.err
    assert ended.err.count("a checkpoint could not be saved") == 1, ended.err
    assert "not enough space in run" in ended.err
    elsewhere = ended.err.rpartition("saved to ")[2].partition(";")[0]
    assert str(place / "temporary") in elsewhere
    assert load(elsewhere, "cpu").training["steps_done"] == 30
    assert any(is_whole(path) for path in (folder / "checkpoints").glob("step-*"))
    filled.unlink()
    ended = commands.start(*make_command("run"), folder=small).wait()
    assert ended.code == 0, ended.err
    assert read_files(folder) == whole
    shutil.rmtree(elsewhere)
