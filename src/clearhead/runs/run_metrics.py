"""The metrics of a run, `metrics.jsonl`: one record per step."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clearhead.errors import UserError
from clearhead.files import hash_file, open_regular, read_all, read_sealed
from clearhead.runs.progress import Progress
from clearhead.runs.teacher_folders import RUN

METRICS = "metrics.jsonl"
LARGEST = 2**29  # bytes: millions of steps
LONGEST_LINE = 2**18  # bytes
LARGEST_NUMBER = 2**63
END = 2**16  # bytes at the end that are searched for the last record


def make_record(progress: Progress) -> dict[str, Any]:
    """The record of a step: its line of metrics."""
    sample = {} if progress.sample is None else {"sample": progress.sample}
    return {**progress.metrics(), **sample}


def read_record(line: str | bytes) -> dict[str, Any] | None:
    """The record of a line of metrics; None if it is truncated or damaged."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or type(record.get("step")) is not int:
        return None
    numbers = (value for value in record.values() if type(value) is int)
    return record if all(abs(number) < LARGEST_NUMBER for number in numbers) else None


def open_metrics(path: Path) -> io.BufferedReader:
    """Open the metrics for reading; raise UserError if they are not a file or are too large."""
    file = open_regular(path)
    if (size := os.fstat(file.fileno()).st_size) > LARGEST:
        file.close()
        raise UserError(f"{path} has {size} bytes, expected at most {LARGEST}; is it the right file?")
    return io.BufferedReader(file)


def read_lines(file: io.BufferedReader) -> Iterator[bytes]:
    """The lines of the metrics. One that is too long comes in parts, which count as damaged."""
    while line := file.readline(LONGEST_LINE):
        yield line


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """A record for every step of a run."""
    path = folder / METRICS
    if not path.exists():
        return []
    check_metrics(folder, read_sealed(folder / RUN) if (folder / RUN).exists() else {})
    try:
        with open_metrics(path) as file:
            return [record for record in map(read_record, read_lines(file)) if record is not None]
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def last_record(folder: Path) -> dict[str, Any]:
    """The last record of a run, without reading the others or checking the file; {} if there is none."""
    try:
        with open_regular(folder / METRICS) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - END))
            lines = read_all(file, END).split(b"\n")[:-1]
    except (UserError, OSError):
        return {}
    records = map(read_record, reversed(lines))
    return next((record for record in records if record is not None), {})


def check_metrics(folder: Path, settings: dict[str, Any]) -> None:
    """Raise an error if the metrics of a finished run are not those that it wrote."""
    path, expected = folder / METRICS, settings.get("metrics_sha256")
    if not settings.get("finished") or expected is None or not path.exists():
        return
    open_metrics(path).close()
    if hash_file(path) not in (None, expected):
        raise UserError(
            f"{path} is damaged: it does not match the hash in {RUN}; copy it again, or delete it to do without "
            "the losses of this run"
        )
