"""The simulated power loss: it destroys what was not flushed, and nothing else."""

import os
import random

import pytest

from clearhead.files import make_folder, settle_folder, write_text
from clearhead.runs.staging import begin, put_in_place, recover
from tools.power_loss import recording, write_remains

CUTS = 60


def remains(work, tmp_path):
    """Yield the files left by each simulated power loss after `work`, in a folder that had the file `old`."""
    root = tmp_path / "disk"
    root.mkdir()
    (root / "old").write_text("old")
    with recording(root) as record:
        work(root)
    for number in range(CUTS):
        place = tmp_path / str(number)
        write_remains(record, len(record.events), random.Random(number), place)
        recover(place)
        yield {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def without_any_flush(root):
    (root / "new").write_text("new")
    os.replace(root / "new", root / "old")  # noqa: PTH105


def without_a_flush_of_the_folder(root):
    with (root / "new").open("w") as file:
        file.write("new")
        file.flush()
        os.fsync(file.fileno())
    os.replace(root / "new", root / "old")  # noqa: PTH105


def without_a_flush_of_the_file(root):
    (root / "new").write_text("new")
    os.replace(root / "new", root / "old")  # noqa: PTH105
    settle_folder(root)


def in_a_new_folder(root):
    (root / "folder").mkdir()
    write_text(root / "folder" / "old", "new")


@pytest.mark.parametrize(
    ("work", "found"),
    [
        (without_any_flush, [b"old", b"new", b"", b"ne", b"\0\0\0"]),
        (without_a_flush_of_the_folder, [b"old", b"new"]),
        (without_a_flush_of_the_file, [b"new", b"", b"n\0\0"]),
    ],
)
def test_what_is_not_flushed_may_be_lost(work, found, tmp_path):
    left = {files["old"] for files in remains(work, tmp_path)}
    assert left >= set(found)
    assert (b"old" in left) == (b"old" in found)


def test_new_folder_may_be_lost_with_the_files_in_it(tmp_path):
    left = list(remains(in_a_new_folder, tmp_path))
    assert {files.get("folder/old") for files in left} == {None, b"new"}
    assert all(files["old"] == b"old" for files in left)


def replaced(root):
    write_text(root / "old", "new")


def in_made_folders(root):
    make_folder(root / "a" / "b")
    write_text(root / "a" / "b" / "file", "new")


def replaced_folder(root):
    for text in ("old", "new"):
        staged = begin(root / "a" / "folder")
        staged.mkdir()
        write_text(staged / "file", text)
        put_in_place(root / "a" / "folder")


@pytest.mark.parametrize(
    ("work", "name"), [(replaced, "old"), (in_made_folders, "a/b/file"), (replaced_folder, "a/folder/file")]
)
def test_what_was_saved_is_not_lost(work, name, tmp_path):
    assert {files.get(name) for files in remains(work, tmp_path)} == {b"new"}
