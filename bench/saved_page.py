"""How large a saved page is: one head's view of 512 tokens of the stories; with the flow; with the lens too.

Usage: python -m bench.saved_page MODEL [--tokens N] [--head BLOCK.HEAD]. Prints one JSON line.
The bound is 5 MB.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from itertools import islice
from pathlib import Path

import clearhead
from clearhead.text.stories import stories

BOUND = 5_000_000  # bytes


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--head", default="13.8")
    given = parser.parse_args()
    model = clearhead.load(given.model)
    text = " ".join(each.text for each in islice(stories(), given.tokens))
    trace = model.inspect(model.tokenizer.encode(text)[: given.tokens])
    block, head = given.head.split(".")
    view = f"block.{block}.head.{head}"
    sizes, seconds = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        kept = {"head": [view], "flow_and_head": ["flow", view], "lens_too": ["flow", view, "lens"]}
        for name, views in kept.items():
            path, start = Path(folder, f"{name}.html"), time.perf_counter()
            clearhead.save_html(trace, path, views)
            seconds[f"{name}_seconds"] = round(time.perf_counter() - start, 2)
            sizes[f"{name}_bytes"] = path.stat().st_size
    told = {"model": Path(given.model).name, "tokens": len(trace), "view": view, **sizes, **seconds}
    print(json.dumps({**told, "bound_bytes": BOUND, "within": max(sizes.values()) < BOUND}))


if __name__ == "__main__":
    main()
