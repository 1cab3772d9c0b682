"""A static web host for published pages, and its guests."""

from contextlib import contextmanager
from types import SimpleNamespace

from tests.web.visitor import Visitor
from tools.live_page import serve

PATH = "/user/clearhead/"


class Guest(Visitor):
    def open(self, query=""):
        self.page.goto(f"{self.server.url}{PATH}{query}")
        self.settle()
        self.page.locator(".brand").click()


@contextmanager
def serving(root):
    """Serve a folder as any static web host does; a page under `PATH` is not at the root."""
    with serve(root) as url:
        yield SimpleNamespace(url=url, root=root)


@contextmanager
def receiving(browser):
    """Give each guest a browser context of its own, then check that the browser logged no errors."""
    made = []

    def receive(kind, host, width, height, script="localStorage.setItem('walked', 'yes')", **settings):
        context = browser.new_context(
            viewport={"width": width, "height": height},
            **{"locale": "en-GB", "reduced_motion": "reduce", **settings},
        )
        context.add_init_script(script)
        made.append(kind(context, host))
        return made[-1]

    yield receive
    left = [complaint for guest in made for complaint in guest.left()]
    for guest in made:
        guest.context.close()
    assert not left
