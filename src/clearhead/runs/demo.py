"""The demo's run: the built-in stories, with sizes that suit a minute of training on two cores."""

from __future__ import annotations

from itertools import islice
from typing import Any

from clearhead.runs.request import TrainingRequest
from clearhead.text.corpus import Document
from clearhead.text.stories import stories

STORIES = 12_000
SETTINGS: dict[str, Any] = {
    "tokenizer": "bpe",
    "vocab": 1024,
    "blocks": 2,
    "width": 64,
    "heads": 4,
    "context": 128,
    "batch": 8,
}
SNAPSHOTS = 12


def demo_texts(count: int = STORIES) -> list[Document]:
    return [Document.of(f"story {i}", story.text) for i, story in enumerate(islice(stories(), count))]


def demo_request(**settings: Any) -> TrainingRequest:
    return TrainingRequest(**{"minutes": 1.0, **SETTINGS, **settings})
