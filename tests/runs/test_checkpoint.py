import shutil

import pytest
import torch

from clearhead.errors import UserError
from clearhead.runs.checkpoint import (
    MANIFEST,
    STATE,
    TENSORS,
    Checkpoint,
    checkpoint_at,
    is_whole,
    newest_checkpoint,
    read_checkpoint,
    save_checkpoint,
)
from clearhead.runs.staging import recover


def make(step: int) -> Checkpoint:
    torch.manual_seed(step)
    return Checkpoint(step, {"w": torch.randn(5, 3), "n": torch.tensor(step)}, {"losses": [1.5, 0.1]})


@pytest.fixture
def folder(tmp_path):
    for step in (10, 20, 30):
        save_checkpoint(tmp_path / "checkpoints", make(step))
    return tmp_path / "checkpoints"


def test_checkpoint_round_trips_exactly(folder):
    found = read_checkpoint(newest_checkpoint(folder))
    assert found.step == 30
    assert found.state == {"losses": [1.5, 0.1]}
    for name, tensor in make(30).tensors.items():
        assert torch.equal(found.tensors[name], tensor)


def test_last_two_checkpoints_are_kept(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000030"]


def test_checkpoints_needed_for_rollback_are_kept(folder):
    for step, good in ((40, 20), (50, 20), (60, 60)):
        save_checkpoint(folder, Checkpoint(step, {}, {"good": good}))
    assert sorted(int(path.name[5:]) for path in folder.iterdir()) == [20, 50, 60]
    assert torch.equal(read_checkpoint(checkpoint_at(folder, 20)).tensors["w"], make(20).tensors["w"])
    (folder / "step-000000020" / TENSORS).write_bytes(b"")
    assert checkpoint_at(folder, 20) is None
    assert checkpoint_at(folder, 30) is None


@pytest.mark.parametrize("name", [TENSORS, STATE, MANIFEST])
def test_flipped_bit_falls_back_to_the_previous_checkpoint(folder, name):
    path = folder / "step-000000030" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert not is_whole(path.parent)
    assert newest_checkpoint(folder).name == "step-000000020"


@pytest.mark.parametrize("name", [TENSORS, STATE, MANIFEST])
def test_missing_or_truncated_file_falls_back_too(folder, name):
    path = folder / "step-000000030" / name
    path.write_bytes(path.read_bytes()[:-3])
    assert newest_checkpoint(folder).name == "step-000000020"
    path.unlink()
    assert newest_checkpoint(folder).name == "step-000000020"


def test_no_intact_checkpoint_raises(folder):
    for path in folder.iterdir():
        (path / MANIFEST).unlink()
    with pytest.raises(UserError, match=r"no checkpoint in .* is intact \(2 found\)"):
        newest_checkpoint(folder)


def test_partial_checkpoints_are_ignored_and_cleaned_up(folder):
    shutil.copytree(folder / "step-000000030", folder / ".step-000000040.new")
    (folder / ".manifest.json.0123abcd").touch()
    assert newest_checkpoint(folder).name == "step-000000030"
    recover(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000030"]


def test_checkpoint_moved_aside_but_not_replaced_is_restored(folder):
    (folder / "step-000000030").rename(folder / ".step-000000030.old")
    shutil.copytree(folder / "step-000000020", folder / ".step-000000020.old")
    recover(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000030"]
    assert newest_checkpoint(folder).name == "step-000000030"


def test_saving_after_a_rollback_removes_later_checkpoints(folder):
    save_checkpoint(folder, make(25))
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000025"]


def test_saving_a_step_again_replaces_its_checkpoint(folder):
    again = Checkpoint(30, make(7).tensors, {"losses": []})
    save_checkpoint(folder, again)
    found = read_checkpoint(newest_checkpoint(folder))
    assert (found.step, found.state) == (30, {"losses": []})
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000030"]


def test_no_checkpoint_yet_returns_none(tmp_path):
    assert newest_checkpoint(tmp_path / "nothing") is None


def test_damaged_new_checkpoint_keeps_the_old_ones(folder, monkeypatch):
    """Old checkpoints are deleted only after the new one has been verified."""
    monkeypatch.setattr("clearhead.runs.checkpoint.is_whole", lambda path: False)
    save_checkpoint(folder, make(40))
    assert len(list(folder.iterdir())) == 3
