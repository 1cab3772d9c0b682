"""Tests for the benchmark of live pages, with a tiny model in a real browser."""

import pytest

from clearhead.page.assets import has_bundles
from tests.bench.process import run_short

pytestmark = pytest.mark.slow

COMPUTING = 900  # milliseconds during which nothing changes on the page
PAGE = f"""<main aria-busy="false"><button>run</button></main>
<script>
  requestAnimationFrame = (paint) => setTimeout(paint, 60); // as on a busy machine
  const main = document.querySelector("main");
  const set = (busy) => main.setAttribute("aria-busy", busy);
  main.addEventListener("click", () => {{
    set(true);
    setTimeout(() => set(false), {COMPUTING});
  }});
</script>"""


def test_time_includes_a_computation_in_which_nothing_changes(browser):
    from bench.explorer import timed

    context = browser.new_context()
    page = context.new_page()
    page.set_content(PAGE)
    assert timed(page, page.get_by_role("button").click) >= COMPUTING - 1
    context.close()


def test_short_mode_prints_one_line():
    found = pytest.importorskip("tools.browser", reason="Playwright is not installed: pip install '.[dev]'")
    if found.find_chromium() is None:
        pytest.skip("Chromium is not installed")
    if not has_bundles():
        pytest.skip("the page is not built: run `pip install .` with npm installed")
    figures = run_short("browser")
    assert figures["tokens"] >= 32
    for name in ("load_s", "text_ms", "typed_ms", "trace_ms", "tokens_per_s", "page_per_s", "memory_mb"):
        assert figures[name] > 0, name
