"""The page as one HTML file that opens in the view that is shown now."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from clearhead.api.inspection import TextRequest

MAX_QUERY = 400_000  # characters: the text and the edits, percent-encoded


class PageFileRequest(TextRequest):
    """What the page shows: its text and model, and its address, which holds the rest."""

    query: Annotated[str, StringConstraints(max_length=MAX_QUERY)]
    view: Annotated[str, StringConstraints(max_length=20)]
    block: Annotated[int, Field(ge=0, lt=10_000, strict=True)]
    head: Annotated[int, Field(ge=0, lt=10_000, strict=True)]
    language: Annotated[str, StringConstraints(pattern="^[a-z]{2}$")] | None = Field(
        None,
        description="The language in which the file opens; the reader's by default.",
        examples=["de"],
    )
    other: TextRequest | None = Field(None, description="The text or model to compare with.")
