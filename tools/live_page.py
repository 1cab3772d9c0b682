"""What tests and benchmarks of published pages share: a static web host, and a way to ask a live page's engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

# Runs before the page. `ask` sends the engine's worker a request as the page does, and resolves to its response, whose
# body is an ArrayBuffer. `sent` holds the paths of all requests.
ASK = """
const Original = Worker;
window.sent = [];
window.Worker = class extends Original {
  constructor(...given) {
    super(...given);
    window.engine = this;
  }
  postMessage(message, ...more) {
    if (message.path) window.sent.push(message.path);
    super.postMessage(message, ...more);
  }
};
let count = 1e9;
window.ask = (path, body) => new Promise((resolve) => {
  const id = count++;
  window.engine.addEventListener("message", function hear({ data }) {
    if (data.id !== id) return;
    window.engine.removeEventListener("message", hear);
    resolve(data);
  });
  window.engine.postMessage({ id, path, body: JSON.stringify(body) });
});
localStorage.setItem("walked", "yes");
"""


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve a folder as any static web host does, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
