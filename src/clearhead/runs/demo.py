"""The demo's run: the built-in stories, and sizes that fit a minute on two cores."""

from __future__ import annotations

from itertools import islice
from typing import Any

from clearhead.runs.request import TrainingRequest
from clearhead.text.corpus import Document
from clearhead.text.stories import stories

STORIES = 12_000


def demo_texts(count: int = STORIES) -> list[Document]:
    return [Document.of(f"story {i}", story.text) for i, story in enumerate(islice(stories(), count))]


def demo_request(**settings: Any) -> TrainingRequest:
    sizes = {"blocks": 2, "width": 64, "heads": 4, "context": 128, "batch": 8, "vocab": 1024}
    return TrainingRequest(**{"minutes": 1.0, "tokenizer": "bpe", **sizes, **settings})
