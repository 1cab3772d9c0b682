"""Tests for the explorer benchmark and the screenshots, with a small model in a real browser."""

import subprocess
import sys
from json import loads
from pathlib import Path

import pytest
from PIL import Image

from clearhead.page.assets import has_site

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def browser():
    found = pytest.importorskip("tools.browser", reason="Playwright is not installed: pip install '.[dev]'")
    if found.find_chromium() is None:
        pytest.skip("Chromium is not installed")
    if not has_site():
        pytest.skip("the page is not built: run `pip install .` with npm installed")


def run(*command):
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_short_mode_prints_one_line_with_bounds():
    output = run("bench.explorer", "--short")
    assert output.count("\n") == 1
    figures = loads(output)
    assert figures["typed_bound_ms"] == pytest.approx(1.5 * figures["forward_ms"] + 100, abs=0.2)
    for name in ("typed_ms", "head_ms", "matrix_ms", "edit_ms"):
        assert 0 < figures[name] < 20_000, name
    assert 0 < figures["pan_fps"] <= 240
    assert 0 < figures["effect_map_s"] < 60


def test_each_interaction_is_measured():
    figures = loads(run("bench.explorer", "--short", "--interactions"))
    times = {name: value for name, value in figures.items() if name.endswith("_ms")}
    assert len(times) > 10
    assert all(0 < value < 20_000 for value in times.values()), times


def test_screenshots_cover_flow_and_head_in_both_themes(model_folder, tmp_path):
    output = run("tools.screenshots", str(tmp_path), str(model_folder))
    names = {f"{what}-{theme}.png" for what in ("flow", "head") for theme in ("light", "dark")}
    assert {Path(line).name for line in output.split()} == names
    for name in names:
        with Image.open(tmp_path / name) as picture:
            picture.load()
            assert picture.width > 2000
