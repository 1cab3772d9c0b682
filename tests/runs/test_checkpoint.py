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


def test_what_was_saved_comes_back_to_the_bit(folder):
    found = read_checkpoint(newest_checkpoint(folder))
    assert found.step == 30
    assert found.state == {"losses": [1.5, 0.1]}
    for name, tensor in make(30).tensors.items():
        assert torch.equal(found.tensors[name], tensor)


def test_two_are_kept(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000030"]


def test_what_they_would_go_back_to_is_kept_too(folder):
    for step, good in ((40, 20), (50, 20), (60, 60)):
        save_checkpoint(folder, Checkpoint(step, {}, {"good": good}))
    assert sorted(int(path.name[5:]) for path in folder.iterdir()) == [20, 50, 60]
    assert torch.equal(read_checkpoint(checkpoint_at(folder, 20)).tensors["w"], make(20).tensors["w"])
    (folder / "step-000000020" / TENSORS).write_bytes(b"")
    assert checkpoint_at(folder, 20) is None
    assert checkpoint_at(folder, 30) is None


@pytest.mark.parametrize("name", [TENSORS, STATE, MANIFEST])
def test_a_flipped_bit_sends_it_back_to_the_one_before(folder, name):
    path = folder / "step-000000030" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert not is_whole(path.parent)
    assert newest_checkpoint(folder).name == "step-000000020"


@pytest.mark.parametrize("name", [TENSORS, STATE, MANIFEST])
def test_so_does_a_missing_or_a_cut_file(folder, name):
    path = folder / "step-000000030" / name
    path.write_bytes(path.read_bytes()[:-3])
    assert newest_checkpoint(folder).name == "step-000000020"
    path.unlink()
    assert newest_checkpoint(folder).name == "step-000000020"


def test_none_that_is_whole_is_said(folder):
    for path in folder.iterdir():
        (path / MANIFEST).unlink()
    with pytest.raises(UserError, match="none of the 2 checkpoints"):
        newest_checkpoint(folder)


def test_what_was_left_half_made_is_passed_over_and_swept(folder):
    shutil.copytree(folder / "step-000000030", folder / ".step-000000040.new")
    (folder / ".manifest.json.0123abcd").touch()
    assert newest_checkpoint(folder).name == "step-000000030"
    recover(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000030"]


def test_one_that_was_moved_aside_and_not_replaced_comes_back(folder):
    (folder / "step-000000030").rename(folder / ".step-000000030.old")
    shutil.copytree(folder / "step-000000020", folder / ".step-000000020.old")
    recover(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000030"]
    assert newest_checkpoint(folder).name == "step-000000030"


def test_a_run_that_went_back_leaves_none_of_the_course_it_left(folder):
    save_checkpoint(folder, make(25))
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000025"]


def test_a_step_saved_again_takes_the_place_of_the_first(folder):
    again = Checkpoint(30, make(7).tensors, {"losses": []})
    save_checkpoint(folder, again)
    found = read_checkpoint(newest_checkpoint(folder))
    assert (found.step, found.state) == (30, {"losses": []})
    assert sorted(path.name for path in folder.iterdir()) == ["step-000000020", "step-000000030"]


def test_no_checkpoint_yet(tmp_path):
    assert newest_checkpoint(tmp_path / "nothing") is None


def test_one_that_is_damaged_does_not_cost_the_good_ones(folder, monkeypatch):
    """The old ones go only after the new one was read back."""
    monkeypatch.setattr("clearhead.runs.checkpoint.is_whole", lambda path: False)
    save_checkpoint(folder, make(40))
    assert len(list(folder.iterdir())) == 3
