"""What all requests and responses share.

Every number in a request is bounded. Numbers that are not finite are null in JSON. Validation of a list stops
at the first invalid item: reporting an error for each of a million items would take seconds.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

MAX_CHARACTERS = 200_000  # in a prompt, or in all messages of a conversation
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
ModelName = Annotated[Name, Field(description="A model listed by /v1/models.")]
Text = Annotated[str, StringConstraints(max_length=MAX_CHARACTERS)]
Id = Annotated[int, Field(ge=0, lt=2**31, strict=True)]
Ids = Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MAX_CHARACTERS)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e30, le=1e30)]
Numbers = Annotated[list[Number], Field(fail_fast=True)]
Index = Annotated[int, Field(ge=-(2**31), lt=2**31, strict=True)]
Values = dict[str, str | int]
Range = Annotated[tuple[Index, Index], Field(strict=False)]  # a list in JSON


class WireModel(BaseModel):
    """Base class of all schemas. Numbers must be finite; strings and booleans are not converted to numbers."""

    model_config = ConfigDict(
        strict=True,
        allow_inf_nan=False,
        extra="ignore",
        protected_namespaces=(),
        json_schema_serialization_defaults_required=True,  # a response has all its fields
    )


class RequestModel(WireModel):
    """Base class of all requests. Unknown fields are rejected, because the client may expect them to have an effect."""

    model_config = ConfigDict(extra="forbid")


class Delta(WireModel):
    """Base class of events of a stream, and of what a chunk adds to a message.

    Fields without a value are left out, as in OpenAI's API: in a client that merges chunks, `"type": null` would
    replace the type from an earlier chunk.
    """

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    @model_serializer(mode="wrap")
    def leave_out_nulls(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if value is not None}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """The schema of the fields, which the custom serializer would otherwise hide."""
        fields: Any = {name: value for name, value in schema.items() if name != "serialization"}
        return handler(fields)


class ErrorDetail(WireModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None
    values: Values = Field(
        default={}, description="The values in the message, for clients that translate it by its code."
    )


class ErrorResponse(WireModel):
    """An error, in OpenAI's format."""

    error: ErrorDetail
