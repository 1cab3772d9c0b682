"""The text that a report measures by default (held out by a run, or new stories), and the training text of a run."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from clearhead.errors import UserError
from clearhead.files import home, read_json
from clearhead.formats import builtin
from clearhead.runs.held_out import read_held_out
from clearhead.runs.listing import text_sources
from clearhead.runs.run_folder import is_run
from clearhead.runs.teacher_folders import RUN
from clearhead.text.corpus import Document, documents, measure, readable
from clearhead.text.start_token import split_opening
from clearhead.text.stories import stories
from clearhead.text.token_cache import find_tokens, tokenize
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.tokens import Tokens

INVALID = "\ufffd"  # what incomplete bytes are decoded to
BETWEEN = "\x1c"  # between documents, while they are compared
STORIES, SEED = 400, 22  # new stories: the built-in model was trained and validated with the seeds 20 and 21


@dataclass(frozen=True)
class ReportText:
    """The text that a model is measured on, as tokens."""

    name: str
    tokens: Tokens
    before: int  # the id before the first

    @classmethod
    def read(cls, name: str, texts: Sequence[Document], tokenizer: Tokenizer) -> ReportText:
        """The text of these documents."""
        with tempfile.TemporaryDirectory(prefix="clearhead-") as cache:
            tokens, before = split_opening(tokenize(texts, tokenizer, Path(cache)), tokenizer)
            separator = tokenizer.end_id if tokens.are_documents else None
            return cls(name, Tokens.of(tokens[:], separator=separator), before)

    def documents(self, tokenizer: Tokenizer) -> list[str]:
        """The text of each document."""
        return _decode(self.tokens, tokenizer)


def held_out_text(folder: Path, tokenizer: Tokenizer) -> list[str] | None:
    """The text that a run held out, one string per document, so that it is measured as `eval` would measure it.

    None if the run's folder does not contain it.
    """
    found = read_held_out(folder, tokenizer.end_id) if is_run(folder) else None
    if found is None:
        return None
    if not found.validation.all_count:
        raise UserError(f"{folder} was trained on conversations: name a text to report on")
    # A held-out text with no tokens before it is a whole text, whose first token only precedes those to predict.
    tokens = found.validation if len(found.before) else split_opening(found.validation, tokenizer)[0]
    return _decode(tokens, tokenizer)


def _decode(tokens: Tokens, tokenizer: Tokenizer) -> list[str]:
    """The text of each document."""
    ids = tokens[:]
    ends = np.flatnonzero(ids == tokenizer.end_id).tolist() if tokens.are_documents else []
    texts = [tokenizer.decode(part.tolist()) for part in np.split(ids, ends)]
    # The first may begin, and the last end, within a character.
    return [text for each in texts if (text := each.strip(INVALID))]


def new_stories(folder: Path) -> list[Document] | None:
    """For a built-in model, which holds nothing out, stories that it was not trained on; None for any other."""
    if builtin.name_of(folder) is None:
        return None
    return [Document.of("new stories", each.text) for each in islice(stories(SEED), STORIES)]


def shared_text(texts: Sequence[list[str]]) -> list[str] | None:
    """The documents that all of these end with, since runs on one text may hold out more or less of its end.

    None if one text is not the end of another.
    """
    joined = sorted((BETWEEN.join(each) for each in texts), key=len)
    return joined[0].split(BETWEEN) if all(each.endswith(joined[0]) for each in joined) else None


def training_tokens(folder: Path, tokenizer: Tokenizer) -> Tokens | None:
    """The tokens that a run was trained on; None if its text has changed or is not where it was."""
    if not is_run(folder):
        return None
    settings = read_json(folder / RUN)
    if settings.get("text_changed"):
        return None
    share, sha256, cache = (
        float(settings["plan"].get("share", 1.0)),
        settings["text_sha256"],
        home() / "tokens",
    )
    tokens = find_tokens(sha256, tokenizer, cache, share)
    if tokens is None:
        try:
            texts, _ = readable(list(documents(text_sources(settings["command"]))))
            if measure(texts)[0] != sha256:
                return None
            tokens = tokenize(texts, tokenizer, cache, share=share, text_sha256=sha256)
        except UserError:
            return None
    count = settings["tokens"]
    return None if count > len(tokens) else tokens.part(0, count)
