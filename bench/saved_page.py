"""Size of a saved page for 512 tokens of the stories: one head, the head and the flow, and both with the logit lens.

Usage: python -m bench.saved_page MODEL [--tokens N] [--head BLOCK.HEAD]. Prints one JSON line. The limit is
5 MB.
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

LIMIT = 5_000_000  # bytes


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--head", default="13.8")
    args = parser.parse_args()
    model = clearhead.load(args.model)
    text = " ".join(story.text for story in islice(stories(), args.tokens))
    trace = model.inspect(model.tokenizer.encode(text)[: args.tokens])
    block, head = args.head.split(".")
    view = f"block.{block}.head.{head}"
    sizes, seconds = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        saved = {"head": [view], "head_flow": ["flow", view], "head_flow_lens": ["flow", view, "lens"]}
        for name, views in saved.items():
            path, start = Path(folder, f"{name}.html"), time.perf_counter()
            clearhead.save_html(trace, path, views)
            seconds[f"{name}_seconds"] = round(time.perf_counter() - start, 2)
            sizes[f"{name}_bytes"] = path.stat().st_size
    figures = {"model": Path(args.model).name, "tokens": len(trace), "view": view, **sizes, **seconds}
    print(json.dumps({**figures, "limit_bytes": LIMIT, "within_limit": max(sizes.values()) < LIMIT}))


if __name__ == "__main__":
    main()
