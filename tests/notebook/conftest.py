"""Files opened from the disk, in the browser and with the models of the page's own tests."""

from types import SimpleNamespace

import pytest

from clearhead.page.assets import has_bundles
from tests.web.conftest import axe, models  # noqa: F401 (fixtures)
from tests.web.visitor import Visitor


class Reader(Visitor):
    """Someone with a file and without a network."""

    def settle(self):
        """Not every view has a canvas."""
        self.page.locator("main[aria-busy=false] [data-place=detail]").wait_for()
        self.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")

    def open(self, path):
        self.page.goto(path.as_uri())
        self.settle()
        self.page.locator(".brand").click()


@pytest.fixture
def read(browser):
    """At the end the browser must have had nothing to complain of, and must have asked for the file alone."""
    if not has_bundles():
        pytest.skip("the page was not built: pip install . builds it, with npm")
    made = []

    def come(path, width=1800, **settings):
        size = {"width": width, "height": 1000}
        context = browser.new_context(viewport=size, offline=True, **{"locale": "en-GB", **settings})
        reader = Reader(context, SimpleNamespace(url="file://"))
        made.append((reader, path))
        reader.open(path)
        return reader

    yield come
    for reader, path in made:
        asked = {request.url for request in reader.asked if not request.url.startswith("blob:")}
        reader.context.close()
        assert not reader.left()
        assert asked == {path.as_uri()}
