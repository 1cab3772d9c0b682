"""Shared fixtures: an isolated home folder, one thread per worker, and a small model trained once."""

import gc
import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from functools import cache
from itertools import count, islice

import httpx
import pytest
import torch
from hypothesis import HealthCheck, settings

from clearhead.errors import UserError
from clearhead.formats.pulled import pull
from clearhead.language_model import load
from clearhead.runs import loss_curve, plan, recipes, saved_run
from clearhead.runs.request import TrainingRequest
from clearhead.runs.run import Run
from clearhead.text import chat, chat_renderer
from clearhead.text.corpus import documents
from clearhead.text.stories import stories
from tests.forked import Forked, command
from tests.work_clock import WorkClock

# Two workers on two cores would compete for four threads; subprocesses inherit the variable.
torch.set_num_threads(1)
os.environ["OMP_NUM_THREADS"] = "1"
# jsonschema would spend seconds importing this package, if installed, for a format that no schema here uses.
sys.modules["rfc3987_syntax"] = None
# Disable deadlines and the too_slow health check: both depend on the speed of the machine.
settings.register_profile(
    "clearhead",
    deadline=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("clearhead")
# Only the limit on CPU time should end a chat template: wall time depends on the load of the machine.
chat.LONGEST_WAIT = 120
# On a CPU with hardware for bfloat16, training would use it by default, and results would depend on the machine.
HAS_FAST_BFLOAT16 = recipes.has_fast_bfloat16
for each in (plan, recipes):
    each.has_fast_bfloat16 = lambda device: device.type != "cpu" and HAS_FAST_BFLOAT16(device)
# Waiting for the disk protects against a power failure, which no test causes.
os.fsync = lambda handle: None
saved_run.SAMPLE_TOKENS = 8  # a run writes a sample at each validation
# Each client of httpx and openai would read all the certificates that the system trusts.
httpx._transports.default.create_ssl_context = cache(httpx._transports.default.create_ssl_context)

HOMES = count()
SHARED = pytest.StashKey()
DRAW_CURVE = loss_curve.loss_curve

SLOW = {"browser", "smollm2_file"}  # tests that use these fixtures are slow, unless marked smoke

# These run first, so that no worker is left with a long file at the end.
LONG = ("notebook", "bench", "web", "runs", "docs", "parity", "labs", "text", "tools", "training")


@pytest.hookimpl(tryfirst=True)  # runs before pytest deselects by marker
def pytest_collection_modifyitems(items):
    for item in items:
        if SLOW.intersection(item.fixturenames) and not item.get_closest_marker("smoke"):
            item.add_marker("slow")
    items.sort(key=lambda item: item.path.parent.name not in LONG)


def pytest_collection_finish():
    gc.freeze()  # keeps the garbage collector from visiting the modules and collected tests again and again


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """Give each test its own home folder, and clear variables that change colors, debugging or config."""
    # The folders are numbered here: to find a free name, pytest would list every existing folder in each test.
    folder = tmp_path_factory.getbasetemp() / "homes" / str(next(HOMES))
    folder.mkdir(parents=True)
    monkeypatch.setenv("CLEARHEAD_HOME", str(folder))
    for name in ("NO_COLOR", "FORCE_COLOR", "CLEARHEAD_DEBUG", "CLEARHEAD_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    return folder


class BlankCurve:
    def __init__(self, metrics):
        pass

    def _repr_svg_(self):
        return '<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.fixture(scope="session", autouse=True)
def blank_curves():
    """Save blank loss curves: drawing one takes as long as a small run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss_curve, "loss_curve", BlankCurve)
        yield


@pytest.fixture
def real_curves(monkeypatch):
    monkeypatch.setattr(loss_curve, "loss_curve", DRAW_CURVE)


@pytest.fixture(scope="session")
def story_text():
    """About 50 kB of stories."""
    return "\n".join(told.text for told in islice(stories(), 120))[:50_000]


@pytest.fixture(scope="session")
def story_file(story_text, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "stories.txt"
    path.write_text(story_text, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def trained(story_file, tmp_path_factory):
    """A finished training run of a few steps."""
    request = TrainingRequest(
        steps=30, blocks=1, width=32, heads=1, context=64, tokenizer="char", device="cpu", dropout=0.1
    )
    run = Run(list(documents([story_file])), request, tmp_path_factory.mktemp("cache"))
    run.progress = list(run)
    return run


@pytest.fixture(scope="session")
def model_folder(trained, tmp_path_factory):
    """The folder of the trained model. Never write to it; use `copied_model` instead."""
    folder = tmp_path_factory.mktemp("models") / "small"
    trained.model.save(folder)
    return folder


@pytest.fixture
def copied_model(model_folder, tmp_path):
    """A copy of the trained model that the test may damage."""
    return shutil.copytree(model_folder, tmp_path / "model")


@pytest.fixture
def model(model_folder):
    return load(model_folder, "cpu")


@pytest.fixture(scope="session")
def smollm2_file(tmp_path_factory):
    """The GGUF file of a real model."""
    try:
        return pull("smollm2", tmp_path_factory.mktemp("pulled"))
    except UserError as error:
        pytest.skip(f"SmolLM2 is not available: {error}")


@pytest.fixture(scope="session")
def smollm2(smollm2_file):
    return load(smollm2_file, "cpu")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Start one process to fork from for all workers of pytest-xdist."""
    if hasattr(os, "fork"):
        if SHARED not in node.config.stash:
            forked = node.config.stash[SHARED] = Forked()
            node.config.add_cleanup(forked.close)
        node.workerinput["forked"] = node.config.stash[SHARED].address


@pytest.fixture(scope="session")
def forked(request):
    """The command that starts Python in a separate process without spending seconds on importing torch."""
    if not hasattr(os, "fork"):
        yield [sys.executable]
    elif shared := getattr(request.config, "workerinput", {}).get("forked"):
        yield command(shared)
    else:
        with closing(Forked()) as own:
            yield command(own.address)


@pytest.fixture
def rendered_here(monkeypatch):
    """Render chat templates without starting a process for each; `tests/text/test_chat.py` tests these processes."""

    def fill(template, values, mark=""):
        given = json.loads(json.dumps(values))
        return [chat_renderer.fill(template, each, mark) for each in given]

    monkeypatch.setattr(chat, "_ask", fill)


@pytest.fixture
def work_clock():
    """A clock for time-limited training that advances with the work done."""
    with WorkClock() as clock:
        yield clock


@pytest.fixture(scope="session")
def browser():
    """One Chromium per worker.

    Playwright keeps an event loop running in this thread; tests run their own with `tests.event_loop.run`.
    """
    browser = pytest.importorskip("tools.browser", reason="Playwright is not installed: pip install '.[dev]'")
    if browser.find_chromium() is None:
        pytest.skip("Chromium is not installed")
    with browser.browsing() as made:
        yield made


@pytest.fixture
def disk(tmp_path_factory):
    """Mount a small real file system, or skip the test where mounting is not allowed."""
    mounted = []

    def mount(size, *, read_only=False):
        folder = tmp_path_factory.mktemp("disk")
        options = f"size={size}" + (",ro" if read_only else "")
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            pytest.skip(f"no small disk can be mounted here: {error}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True, timeout=60)
