"""`clearhead explore` as a user runs it, with a browser that writes down where it was sent."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial

import httpx
import pytest

from clearhead.cli import demo as demo_command
from clearhead.cli.explore import can_open
from clearhead.page.assets import has_site

built = pytest.mark.skipif(
    not has_site(), reason="the page is not built: run `pip install .` with npm installed"
)


@pytest.fixture
def browser(tmp_path):
    """A command that opens nothing, and the file it writes addresses to."""
    if os.name == "nt":
        pytest.skip("the browser of this test is a shell script")
    visited, script = tmp_path / "visited", tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" >> "{visited}"\n')
    script.chmod(0o755)
    return script, visited


@pytest.fixture
def exploring(command):
    return partial(explore, command)


@contextmanager
def explore(command, *arguments, **environment):
    """The command, until it told where to go: what it said, and the address."""
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


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end, "no browser was opened"
        time.sleep(0.01)
    return path.read_text().split()


@built
def test_the_browser_is_sent_to_the_page(exploring, model_folder, browser):
    script, visited = browser
    with (
        exploring(model_folder, BROWSER=str(script)) as (_, said, address),
        httpx.Client(trust_env=False, follow_redirects=True) as client,
    ):
        assert "small: " in said
        assert wait_for(visited) == [address]
        answer = client.get(address)
        assert (answer.status_code, answer.url.query) == (200, b"")
        assert '<div id="page">' in answer.text
        assert [each["id"] for each in client.get(answer.url.join("/v1/models")).json()["data"]] == ["small"]


@built
def test_no_browser_where_none_is_wanted(exploring, model_folder, browser):
    script, visited = browser
    with exploring(model_folder, "--no-browser", BROWSER=str(script)) as (_, _, address):
        assert httpx.get(address, trust_env=False).status_code == 303
    assert not visited.exists()


@built
def test_without_a_model_the_newest_is_opened_and_the_others_are_offered(exploring, model_folder, tmp_path):
    for i in range(3):
        folder = shutil.copytree(model_folder, tmp_path / "runs" / f"run{i}")
        os.utime(folder, (i, i))
    (tmp_path / "runs" / "run2" / "model.safetensors").write_bytes(b"no model")
    shutil.copytree(tmp_path / "runs" / "run0", tmp_path / "runs" / "bad")
    (tmp_path / "runs" / "bad" / "config.json").write_text("{")
    with (
        exploring("--no-browser") as (_, said, address),
        httpx.Client(trust_env=False, follow_redirects=True) as client,
    ):
        assert "skipped" in said
        assert "run2 could not be loaded" in said
        models = client.get(client.get(address).url.join("/api/models")).json()["models"]
    assert {each["name"]: each["state"] for each in models} == {
        "run1": "loaded",
        "run2": "not loaded",
        "run0": "not loaded",
    }


@built
def test_without_any_model_the_page_offers_one(exploring):
    with (
        exploring("--no-browser") as (_, said, address),
        httpx.Client(trust_env=False, follow_redirects=True) as client,
    ):
        assert "no models in runs" in said
        listed = client.get(client.get(address).url.join("/api/models")).json()
    assert listed["models"] == []
    assert [each["name"] for each in listed["can_be_pulled"]] == ["smollm2"]


@built
def test_a_model_that_is_not_there(clearhead):
    result = clearhead("explore", "nowhere", "--no-browser")
    assert (result.code, result.out) == (2, "")
    assert result.err.endswith("clearhead: none of the models could be loaded\n")


def test_without_the_page_one_is_told_how_to_build_it(refused, monkeypatch, model_folder):
    monkeypatch.setattr("clearhead.page.assets.has_site", lambda: False)
    refused("explore", model_folder, words=["was not built", "pip install ."])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems always have windows")
def test_a_browser_needs_a_window_or_the_users_choice(monkeypatch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert not can_open()
    monkeypatch.setenv("BROWSER", "firefox")
    assert can_open()


def test_off_a_terminal_the_demo_prints_what_to_type(monkeypatch, browser, capsys):
    script, visited = browser
    monkeypatch.setenv("BROWSER", str(script))
    demo_command._open_page("runs/my demo", "cpu", no_browser=False)
    assert capsys.readouterr().out == ("\nEvery step of it, in a browser: clearhead explore 'runs/my demo'\n")
    assert not visited.exists()


@built
@pytest.mark.parametrize("looking", [{}, {"CI": "1"}])
def test_on_a_terminal_the_demo_ends_on_the_page(forked, model_folder, browser, looking):
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    script, visited = browser
    ours, theirs = pty.openpty()
    code = f"from clearhead.cli.demo import _open_page; _open_page({str(model_folder)!r}, 'cpu', False)"
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    with subprocess.Popen(
        [*forked, "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**environment, "BROWSER": str(script), **looking},
    ) as command:
        os.close(theirs)
        if not looking:
            (address,) = wait_for(visited, 60)
            assert httpx.get(address, trust_env=False).status_code == 303
            command.send_signal(signal.SIGINT)
        seen = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # how Linux says that the other end was closed
                break
            if not block:
                break
            seen += block
        assert command.wait(60) == 0, seen
    os.close(ours)
    if looking:
        assert b"clearhead explore" in seen
        assert not visited.exists()
    else:
        assert b"The page opens in the browser" in seen
