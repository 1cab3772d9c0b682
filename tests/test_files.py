"""Atomic file writes: a file is complete or absent."""

import ast
import errno
import os
from pathlib import Path

import pytest

import clearhead
from clearhead.errors import UserError
from clearhead.files import disk_errors, home, read_json, read_text, write_json, write_text, write_whole

SOURCE = Path(clearhead.__file__).parent


def test_json_and_text_round_trip(tmp_path):
    document = {"text": "été\n", "numbers": [1, 2.5, None], "nested": {"yes": True}}
    write_json(tmp_path / "a.json", document)
    assert read_json(tmp_path / "a.json") == document
    write_text(tmp_path / "a.json", "line\nline\n")
    assert (tmp_path / "a.json").read_bytes() == b"line\nline\n"
    assert read_text(tmp_path / "a.json") == "line\nline\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.ENOSPC, "full"), ValueError])
def test_failed_write_keeps_only_the_old_file(error, tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def write(temporary):
        assert temporary.parent == tmp_path
        temporary.write_text("half")
        raise error

    with pytest.raises(error if isinstance(error, type) else OSError):
        write_whole(path, write)
    assert [name.name for name in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_writing_nan_as_json_keeps_the_old_file(tmp_path):
    write_json(tmp_path / "a.json", {"old": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert read_json(tmp_path / "a.json") == {"old": 1}
    assert len(list(tmp_path.iterdir())) == 1


def test_file_is_flushed_before_it_is_renamed(tmp_path, monkeypatch):
    """Otherwise, a power failure could leave an empty file under the final name."""
    events = []
    settle, rename = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("flush"), settle(handle))[1])
    monkeypatch.setattr(Path, "replace", lambda path, to: (events.append("rename"), rename(path, to))[1])
    write_text(tmp_path / "a.txt", "text")
    assert events == ["flush", "rename", "flush"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is not valid JSON"),
        (b"{", "is not valid JSON"),
        (b"[" * 100_000, "is not valid JSON"),
        (b"\xff", "is not UTF-8"),
        (b"[1]", "a JSON list, expected an object"),
        (b"null", "expected an object"),
    ],
)
def test_unreadable_json_raises(content, words, tmp_path):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        read_json(tmp_path / "a.json")
    assert "a.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_text_raises(tmp_path):
    with pytest.raises(UserError, match=r"no such file: .*a\.json"):
        read_text(tmp_path / "a.json")
    with pytest.raises(UserError, match="is a folder, expected a file"):
        read_text(tmp_path)
    (tmp_path / "a.json").write_text("four")
    with pytest.raises(UserError, match="has 4 bytes, expected at most 3"):
        read_text(tmp_path / "a.json", 3)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "no space left in out: it was not saved; free some space"),
        (errno.EDQUOT, "no space left in out: it was not saved; free some space"),
        (errno.EACCES, r"out cannot be written \(Permission denied\): it was not saved"),
        (errno.EROFS, r"out cannot be written \(Read-only file system\): it was not saved"),
    ],
)
def test_disk_errors_become_user_errors(number, words):
    with pytest.raises(UserError, match=words), disk_errors(Path("out"), "it was not saved"):
        raise OSError(number, os.strerror(number))


def test_home_follows_the_environment_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert home() == tmp_path / "mine"
    monkeypatch.delenv("CLEARHEAD_HOME")
    assert home() == tmp_path / "data" / "clearhead"
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path / ".local" / "share" / "clearhead"


# Modules that read files which only they or the system write, and what they read.
OWN_FILES = {
    "classroom/sandbox.py": "/proc",
    "doctor.py": "/proc",
    "export/report_page.py": "the package",
    "export/site.py": "the package",
    "files.py": "a file that it has just written",
    "formats/pulled.py": "a temporary folder",
    "lectures/inputs.py": "the package",
    "lectures/questions.py": "the package",
    "page/assets.py": "the package",
    "runs/run_folder.py": "metrics that were checked",
    "runtime/numba_cache.py": "the cache of compiled functions",
    "server/page.py": "the package",
    "text/sources.py": "files that were checked, and the pipes that a user names",
}


def test_other_files_are_opened_only_if_they_are_regular():
    """Opening a pipe blocks, so no other module opens files for reading on its own."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _reads(node):
                found.add(path.relative_to(SOURCE).as_posix())
    assert found == set(OWN_FILES)


def _reads(call):
    modes = {each.value for each in call.args if isinstance(each, ast.Constant)}
    opens = call.func.attr == "open" and modes & {"r", "rb", "r+b"}
    return bool(opens) or call.func.attr in ("read_bytes", "read_text")
