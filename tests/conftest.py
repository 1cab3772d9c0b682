"""What all tests share: a home of their own, one thread a worker, and a small model trained once."""

import os
import shutil
import subprocess
import sys
from itertools import count, islice

import pytest
import torch
from hypothesis import HealthCheck, settings

from clearhead.errors import UserError
from clearhead.formats.pulled import pull
from clearhead.language_model import load
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.text.corpus import documents
from clearhead.text.stories import stories
from tests.forked import Forked
from tests.work_clock import WorkClock

# Two workers on two cores would fight over four threads; processes that tests start heed the variable.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"
# Where it is there, jsonschema imports it, for seconds, to check a format that no schema here asks for.
sys.modules["rfc3987_syntax"] = None
# No example has a deadline, and none is too slow to make: both would depend on the machine's speed.
settings.register_profile(
    "clearhead",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("clearhead")

HOMES = count()

SLOW = {"browser", "smollm2_file"}  # fixtures whose tests are slow, unless marked smoke

# Collected first, so that no worker is left with a long file at the end.
LONG = ("notebook", "bench", "web", "runs", "docs", "parity", "labs")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(items):
    for item in items:
        if SLOW.intersection(item.fixturenames) and not item.get_closest_marker("smoke"):
            item.add_marker("slow")
    items.sort(key=lambda item: item.path.parent.name not in LONG)


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """What is kept between runs goes to a folder of the test's own, and nothing outside changes colors."""
    # By number: for a name that is free, pytest would read the names of all folders there are, at every test.
    folder = tmp_path_factory.getbasetemp() / "homes" / str(next(HOMES))
    folder.mkdir(parents=True)
    monkeypatch.setenv("CLEARHEAD_HOME", str(folder))
    for name in ("NO_COLOR", "FORCE_COLOR", "CLEARHEAD_DEBUG", "CLEARHEAD_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(scope="session")
def story_text():
    """Some 50 kB of stories."""
    return "\n".join(told.text for told in islice(stories(), 120))[:50_000]


@pytest.fixture(scope="session")
def story_file(story_text, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "stories.txt"
    path.write_text(story_text, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def trained(story_file, tmp_path_factory):
    """A run of a few steps, at its end."""
    request = TrainingRequest(
        steps=30, blocks=1, width=32, heads=1, context=64, tokenizer="char", device="cpu", dropout=0.1
    )
    run = Run(list(documents([story_file])), request, tmp_path_factory.mktemp("cache"))
    run.progress = list(run)
    return run


@pytest.fixture(scope="session")
def model_folder(trained, tmp_path_factory):
    """The trained model's folder. Never write into it: `copied_model` is for that."""
    folder = tmp_path_factory.mktemp("models") / "small"
    trained.model.save(folder)
    return folder


@pytest.fixture
def copied_model(model_folder, tmp_path):
    """The trained model in a folder that the test may damage."""
    return shutil.copytree(model_folder, tmp_path / "model")


@pytest.fixture
def model(model_folder):
    return load(model_folder, "cpu")


@pytest.fixture(scope="session")
def smollm2_file(tmp_path_factory):
    """A real model's GGUF file."""
    try:
        return pull("smollm2", tmp_path_factory.mktemp("pulled"))
    except UserError as error:
        pytest.skip(f"SmolLM2 is not to be had: {error}")


@pytest.fixture(scope="session")
def smollm2(smollm2_file):
    return load(smollm2_file, "cpu")


@pytest.fixture(scope="session")
def forked():
    """How to start Python in a process of its own, without the seconds of importing torch."""
    if not hasattr(os, "fork"):
        yield [sys.executable]
    else:
        with Forked() as python:
            yield python


@pytest.fixture
def work_clock():
    """Time as training by the minute sees it, driven by the work it does."""
    with WorkClock() as clock:
        yield clock


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of a worker.

    Playwright keeps an event loop running in this thread: tests run theirs with `tests.event_loop.run`.
    """
    browser = pytest.importorskip("tools.browser", reason="Playwright is not installed: pip install '.[dev]'")
    if browser.find_chromium() is None:
        pytest.skip("Chromium is not installed")
    with browser.browsing() as made:
        yield made


@pytest.fixture
def disk(tmp_path_factory):
    """Mount a real small disk, where that is allowed."""
    mounted = []

    def mount(size, *, read_only=False):
        folder = tmp_path_factory.mktemp("disk")
        options = f"size={size}" + (",ro" if read_only else "")
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=10)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"no small disk can be mounted here: {error}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True, timeout=10)
