"""What all requests and answers share.

Every number that a client may say is bounded. In JSON, numbers that are not finite are null. A list is left
at the first thing in it that is wrong: to tell of each of a million would take seconds.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

MOST_CHARACTERS = 200_000  # of a prompt, or of all messages of a conversation
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
ModelName = Annotated[Name, Field(description="One of those that /v1/models lists.")]
Text = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
Id = Annotated[int, Field(ge=0, lt=2**31, strict=True)]
Ids = Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MOST_CHARACTERS)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30)]
Numbers = Annotated[list[Number], Field(fail_fast=True)]
Index = Annotated[int, Field(ge=-(2**31), lt=2**31, strict=True)]
Values = dict[str, str | int]
Range = Annotated[tuple[Index, Index], Field(strict=False)]  # which JSON writes as a list


class Wire(BaseModel):
    """Numbers are finite, and neither texts nor true and false."""

    model_config = ConfigDict(
        strict=True,
        allow_inf_nan=False,
        extra="ignore",
        protected_namespaces=(),
        json_schema_serialization_defaults_required=True,  # an answer has all its fields
    )


class Asked(Wire):
    """A request: a field that is not known may be meant to change the answer, so it is refused."""

    model_config = ConfigDict(extra="forbid")


class Fault(Wire):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None
    values: Values = Field(
        default={}, description="What the message is made of, for who says it in another language."
    )


class Refusal(Wire):
    """Every answer that is not what was asked for, in OpenAI's shape."""

    error: Fault
