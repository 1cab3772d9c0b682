"""A static web host for published pages, and its guests."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

from tests.web.visitor import Visitor

PATH = "/user/clearhead/"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Guest(Visitor):
    def open(self, query=""):
        self.page.goto(f"{self.server.url}{PATH}{query}")
        self.settle()
        self.page.locator(".brand").click()


@contextmanager
def serving(root):
    """Serve a folder as any static web host does; a page under `PATH` is not at the root."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", root=root)
    server.shutdown()
    server.server_close()
    thread.join()


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
