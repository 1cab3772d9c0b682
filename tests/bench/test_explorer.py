"""Tests for the explorer benchmark and the screenshots, with a small model in a real browser."""

from pathlib import Path

import pytest
from PIL import Image

from clearhead.page.assets import has_site
from tests.bench.process import run_python, run_short

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def browser():
    found = pytest.importorskip("tools.browser", reason="Playwright is not installed: pip install '.[dev]'")
    if found.find_chromium() is None:
        pytest.skip("Chromium is not installed")
    if not has_site():
        pytest.skip("the page is not built: run `pip install .` with npm installed")


def test_short_mode_prints_one_line_with_bounds():
    figures = run_short("explorer")
    assert figures["typed_bound_ms"] == pytest.approx(1.5 * figures["forward_ms"] + 100, abs=0.2)
    for name in ("typed_ms", "head_ms", "matrix_ms", "edit_ms"):
        assert figures[name] > 0, name
    assert 0 < figures["pan_fps"] <= 240
    assert figures["effect_map_s"] > 0


def test_each_interaction_is_measured():
    figures = run_short("explorer", "--interactions")
    times = {name: value for name, value in figures.items() if name.endswith("_ms")}
    assert len(times) > 10
    assert all(value > 0 for value in times.values()), times


def test_screenshots_cover_flow_head_and_report_in_both_themes(model_folder, story_file, tmp_path):
    output = run_python("-m", "tools.screenshots", tmp_path, model_folder, story_file)
    names = {f"{what}-{theme}.png" for what in ("flow", "head", "report") for theme in ("light", "dark")}
    assert {Path(line).name for line in output.split()} == names
    for name in names:
        with Image.open(tmp_path / name) as picture:
            picture.load()
            assert picture.width > 2000
