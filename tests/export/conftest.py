"""Fixtures for saved pages opened from disk in a browser."""

from types import SimpleNamespace

import pytest

from clearhead.page.assets import has_bundles
from tests.web.conftest import axe, models  # noqa: F401 (fixtures)
from tests.web.visitor import Visitor


class Reader(Visitor):
    """A browser page that shows a saved file without network access."""

    def settle(self):
        """Wait until the page has loaded; not every view has a canvas."""
        self.page.locator("main[aria-busy=false] [data-place=detail]").wait_for()
        self.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")

    def open(self, path):
        self.page.goto(path.as_uri())
        self.settle()
        self.page.locator(".brand").click()


@pytest.fixture
def read(browser):
    """Open files, then check that the browser logged no errors and requested nothing but the file."""
    if not has_bundles():
        pytest.skip("the page is not built: run `pip install .` with npm installed")
    made = []

    def open_file(path, width=1800, **settings):
        size = {"width": width, "height": 1000}
        settings = {"locale": "en-GB", "reduced_motion": "reduce", **settings}
        context = browser.new_context(viewport=size, offline=True, **settings)
        reader = Reader(context, SimpleNamespace(url="file://"))
        made.append((reader, path))
        reader.open(path)
        return reader

    yield open_file
    for reader, path in made:
        requested = {request.url for request in reader.asked if not request.url.startswith("blob:")}
        reader.context.close()
        assert not reader.left()
        assert requested == {path.as_uri()}
