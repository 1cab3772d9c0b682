"""`clearhead explore` as users run it, with a fake browser that records the addresses it opens."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import httpx
import pytest

from clearhead.api.runs import RunRequest
from clearhead.cli import demo as demo_command
from clearhead.cli import explore as explore_command
from clearhead.cli.explore import can_open
from clearhead.formats import listing
from clearhead.page.assets import has_site
from clearhead.runs.demo import demo_request
from tests.serving import make_finished

built = pytest.mark.skipif(
    not has_site(), reason="the page is not built: run `pip install .` with npm installed"
)


@pytest.fixture
def browser(tmp_path):
    """A browser command that opens nothing, and the file it records addresses in."""
    if os.name == "nt":
        pytest.skip("Windows cannot run the shell script that stands in for a browser")
    visited, script = tmp_path / "visited", tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" >> "{visited}"\n')
    script.chmod(0o755)
    return script, visited


@pytest.fixture
def exploring(command):
    return partial(explore, command)


@contextmanager
def explore(command, *arguments, **environment):
    """Run the command until it prints its address; yield the process, its output and the address."""
    started = subprocess.Popen(
        [*command, "explore", *map(str, arguments), "--device", "cpu"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        said = []
        for line in started.stderr:
            said.append(line)
            if line.startswith("open http"):
                break
        else:
            raise AssertionError("".join(said))
        yield started, "".join(said), line.split()[1]
        started.send_signal(signal.SIGINT)
        after = started.stderr.read()
        assert started.wait(60) == 0, after
        assert after.endswith("ended\n")
    finally:
        if started.poll() is None:
            started.kill()
        started.wait(60)
        started.stderr.close()
        started.stdout.close()


def wait_for(path, seconds=300):
    end = time.monotonic() + seconds
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end, "no browser was opened"
        time.sleep(0.01)
    return path.read_text().split()


@built
def test_browser_opens_the_page(exploring, model_folder, browser):
    script, visited = browser
    with (
        exploring(model_folder, BROWSER=str(script)) as (_, said, address),
        httpx.Client(trust_env=False, timeout=60, follow_redirects=True) as client,
    ):
        assert "small: " in said
        assert wait_for(visited) == [address]
        answer = client.get(address)
        assert (answer.status_code, answer.url.query) == (200, b"")
        assert '<div id="page">' in answer.text
        assert [each["id"] for each in client.get(answer.url.join("/v1/models")).json()["data"]] == ["small"]


@built
def test_no_browser_option_opens_no_browser(exploring, model_folder, browser):
    script, visited = browser
    with exploring(model_folder, "--no-browser", BROWSER=str(script)) as (_, _, address):
        assert httpx.get(address, trust_env=False, timeout=60).status_code == 303
    assert not visited.exists()


@built
def test_newest_model_is_loaded_and_others_listed_by_default(exploring, model_folder, tmp_path):
    for i in range(3):
        folder = shutil.copytree(model_folder, tmp_path / "runs" / f"run{i}")
        os.utime(folder, (i, i))
    (tmp_path / "runs" / "run2" / "model.safetensors").write_bytes(b"no model")
    shutil.copytree(tmp_path / "runs" / "run0", tmp_path / "runs" / "bad")
    (tmp_path / "runs" / "bad" / "config.json").write_text("{")
    with (
        exploring("--no-browser") as (_, said, address),
        httpx.Client(trust_env=False, timeout=60, follow_redirects=True) as client,
    ):
        assert "skipped" in said
        assert "run2 could not be loaded" in said
        models = client.get(client.get(address).url.join("/api/models")).json()["models"]
    assert {each["name"]: each["state"] for each in models} == {
        "run1": "loaded",
        "run2": "not loaded",
        "run0": "not loaded",
        "stories": "not loaded",
    }
    assert models[-1]["name"] == "stories"


@built
def test_built_in_model_is_shown_when_there_is_no_other(exploring):
    with (
        exploring("--no-browser") as (_, said, address),
        httpx.Client(trust_env=False, timeout=60, follow_redirects=True) as client,
    ):
        assert "no models in runs" in said
        page = client.get(address).url
        listed = client.get(page.join("/api/models")).json()
        [run] = client.get(page.join("/api/runs")).json()["runs"]
        snapshot = client.post(
            page.join("/api/open"), json={"model": f"stories@{run['snapshots'][0]}"}
        ).json()
    assert [(each["name"], each["state"], each["origin"]) for each in listed["models"]] == [
        ("stories", "loaded", "built-in")
    ]
    assert (run["name"], run["model"], run["state"]) == ("stories", "stories", "finished")
    assert snapshot["state"] == "loaded"
    assert [each["name"] for each in listed["can_be_pulled"]] == ["smollm2"]


@built
def test_missing_model_is_rejected(refused):
    refused("explore", "nowhere", "--no-browser", words=["no such folder or file: nowhere"])


def test_missing_page_error_explains_how_to_build_it(refused, monkeypatch, model_folder):
    monkeypatch.setattr("clearhead.page.assets.has_site", lambda: False)
    refused("explore", model_folder, words=["was not built", "pip install ."])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have a display")
def test_opening_a_browser_requires_a_display_or_browser_variable(monkeypatch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not can_open()
    monkeypatch.setenv("BROWSER", "firefox")
    assert can_open()


@built
def test_demo_needs_a_terminal_and_a_browser_to_open_the_page(monkeypatch, browser):
    script, _ = browser
    monkeypatch.setenv("BROWSER", str(script))
    monkeypatch.delenv("CI", raising=False)
    assert demo_command._cannot_show() == "the output is not a terminal"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert demo_command._cannot_show() is None
    monkeypatch.setattr(demo_command, "can_open", lambda: False)
    assert demo_command._cannot_show() == "no graphical browser was found"
    monkeypatch.setenv("CI", "1")
    assert demo_command._cannot_show() == "the output is not a terminal"


@built
def test_demo_opens_the_page_on_the_built_in_model_and_trains_another(command, browser, tmp_path):
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    script, visited = browser
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    with subprocess.Popen(
        [*command, "demo", "--minutes", "5", "--device", "cpu"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=tmp_path,
        env={**environment, "BROWSER": str(script)},
    ) as started:
        os.close(theirs)
        (address,) = wait_for(visited)
        with httpx.Client(trust_env=False, timeout=60, follow_redirects=True) as client:
            page = client.get(address).url
            assert page.params["view"] == "training"
            models = client.get(page.join("/api/models")).json()["models"]
            end = time.monotonic() + 300
            while (now := client.get(page.join("/api/runs")).json()["now"]) != page.params["runs"]:
                assert time.monotonic() < end, now
                time.sleep(0.05)
        started.send_signal(signal.SIGINT)
        seen = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # Linux raises this when the other end is closed
                break
            if not block:
                break
            seen += block
        assert started.wait(120) == 0, seen
    os.close(ours)
    assert [(each["name"], each["state"]) for each in models] == [("stories", "loaded")]
    last = seen.decode().splitlines()[-1]
    # How far the run got depends on the machine; whatever it saved is kept.
    if (tmp_path / "runs" / "demo").exists():
        assert last == "stopped; runs/demo is saved: to resume it, run clearhead explore and go to Training"
    else:
        assert last == "stopped before training began; nothing was saved"


@pytest.mark.parametrize("preset", ["lecture", "gpt2", "modern"])
def test_demo_asks_the_page_to_train_the_chosen_preset(preset):
    run = demo_command._new_run("demo", demo_request(preset=preset, minutes=2.0, seed=3))
    accepted = RunRequest(**run)
    assert (accepted.preset, accepted.minutes, accepted.seed) == (preset, 2.0, 3)
    assert (accepted.blocks, accepted.heads, accepted.width) == (2, 4, 64)


def test_demo_says_what_is_left_of_a_run(tmp_path, model_folder):
    assert demo_command._tell_end(tmp_path / "none") == "stopped before training began; nothing was saved"
    make_finished(tmp_path / "done", model_folder)
    assert "clearhead explore" in demo_command._tell_end(tmp_path / "done")


def test_pulled_model_is_not_opened_first(monkeypatch):
    config = SimpleNamespace(kind="transformer")
    models = [
        SimpleNamespace(path=name, origin=origin, made=made, config=config)
        for name, origin, made in (
            ("smollm2", "pulled", 9),
            ("stories", "built-in", 0),
            ("old", "run", 1),
            ("new", "run", 2),
        )
    ]
    monkeypatch.setattr(listing, "list_models", lambda places, report: models)
    assert explore_command._newest() == ["new", "old", "stories", "smollm2"]
