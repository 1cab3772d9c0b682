"""The responses of the routes as OpenAPI describes them, and corrections to the document FastAPI generates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from clearhead.api import base, inspection, model_responses, openai

Responses = dict[int | str, dict[str, Any]]
SCHEMAS = "#/components/schemas/"

DESCRIPTION = """Language models, and every step of what they compute.

Every request must carry the access token, either as a bearer token or as a cookie. Any URL with `?token=…`
appended sets the cookie and redirects (303) to the same URL without the token. Numbers must be JSON numbers:
strings and booleans are not converted. Unknown fields are rejected. Unsupported methods get a 405 and unknown
paths a 404, in the same format as all errors."""


def _errors(descriptions: Mapping[int, str]) -> Responses:
    return {
        status: {"model": base.ErrorResponse, "description": text} for status, text in descriptions.items()
    }


COMMON_ERRORS = _errors(
    {
        400: "The request is invalid.",
        401: "The token is missing or invalid.",
        403: "The Host or the Origin is not allowed.",
        408: "The body did not arrive in time.",
        413: "The body is too large.",
        415: "The body is compressed, or its content type is not JSON.",
        429: "The server is busy; retry later.",
        500: "Internal server error.",
    }
)
MODEL_ERRORS = _errors({404: "The model does not exist.", 503: "The model could not be loaded."})
PULL_ERRORS = _errors({404: "The model cannot be pulled.", 409: "Another model is being pulled."})
RUN_ERRORS = _errors(
    {404: "The run does not exist.", 409: "The name is taken, or another run is in progress."}
)
BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
MATRIX: Responses = {
    **MODEL_ERRORS,
    200: {
        "model": inspection.Matrix,
        "description": (
            f"Little-endian float32 in row-major order, at most {inspection.MAX_VALUES:,} numbers; or JSON, "
            f"at most {inspection.MAX_JSON_VALUES:,} numbers, if the client accepts application/json."
        ),
        "content": BINARY,
        "headers": {
            "X-Shape": {
                "description": "The shape of a binary response: rows and columns, such as 12,64; or rows alone.",
                "schema": {"type": "string", "pattern": r"^\d+(,\d+)*$"},
            }
        },
    },
}
MATRICES: Responses = {
    **MODEL_ERRORS,
    200: {
        "description": "Little-endian float32 in row-major order, concatenated.",
        "content": BINARY,
        "headers": {
            "X-Shape": {
                "description": "The shape of each matrix, such as 12,64;12.",
                "required": True,
                "schema": {"type": "string", "pattern": r"^\d+(,\d+)*(;\d+(,\d+)*)*$"},
            }
        },
    },
}
HEADERS = {
    "401": {"WWW-Authenticate": {"required": True, "schema": {"const": "Bearer"}}},
    "429": {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
}
RETRY_AFTER = {
    "description": "Seconds to wait before retrying.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}


def streaming_responses(chunk: type[BaseModel]) -> Responses:
    """Return the responses of a route that can also stream its answer as server-sent events."""
    description = (
        f"With `stream`, server-sent events: each is `data: ` followed by a {chunk.__name__} as JSON, or by an "
        "ErrorResponse if generation fails; the last is `data: [DONE]`."
    )
    return _streaming(description, [chunk, base.ErrorResponse], [{"const": "[DONE]"}])


def event_responses(event: type[BaseModel]) -> Responses:
    """Return the responses of a route that can also stream its answer as named events."""
    description = (
        f"With `stream`, server-sent events, each with its type as its name and a {event.__name__} as JSON; the last "
        "is `response.completed`, `response.incomplete` or `response.failed`."
    )
    return _streaming(description, [event], [])


def _streaming(
    description: str, schemas: Sequence[type[BaseModel]], constants: list[dict[str, Any]]
) -> Responses:
    payload = [{"$ref": SCHEMAS + schema.__name__} for schema in schemas]
    data = [
        *constants,
        {"type": "string", "contentMediaType": "application/json", "contentSchema": {"anyOf": payload}},
    ]
    event = {"type": "object", "properties": {"data": {"anyOf": data}}, "required": ["data"]}
    success = {"description": description, "content": {"text/event-stream": {"schema": event}}}
    return {**MODEL_ERRORS, 200: success}


def make_openapi(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """Return a function that generates the app's OpenAPI document once and corrects it."""
    document: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not document:
            document.update(FastAPI.openapi(app))
            for path in document["paths"].values():
                for operation in path.values():
                    _correct_responses(operation["responses"])
            _correct_components(document["components"])
            document["security"] = [{"token": []}]
        return document

    return openapi


def _correct_responses(responses: dict[str, Any]) -> None:
    """Declare every error as JSON, whatever the route returns; validation errors have status 400, not 422."""
    responses.pop("422", None)
    for status, response in responses.items():
        if status >= "400":
            response["content"] = {"application/json": {"schema": {"$ref": SCHEMAS + "ErrorResponse"}}}
            response["headers"] = HEADERS.get(status, {})


def _correct_components(components: dict[str, Any]) -> None:
    schemas = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    for event in (openai.ChatChunk, model_responses.ResponseEvent):
        schema = event.model_json_schema(ref_template=SCHEMAS + "{model}", mode="serialization")
        schemas.update(schema.pop("$defs"))
        schemas[event.__name__] = schema
    components["headers"] = {"RetryAfter": RETRY_AFTER}
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "Printed when the server starts."}
    }
