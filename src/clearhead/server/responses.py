"""The OpenAPI document: what FastAPI reads off the routes, and what it cannot know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from clearhead.api import base, inspection, openai

Responses = dict[int | str, dict[str, Any]]
SCHEMAS = "#/components/schemas/"

ABOUT = """Language models, and every step of what they compute.

Whoever asks shows the token: as a bearer token, or by the cookie that any address with `?token=…` added
gives, with a redirect (303) to the same address without it. Numbers are numbers: neither texts nor true and
false are taken for them. Fields that are not known are refused. Other methods than those here get a 405,
other addresses a 404, in the same shape as every refusal."""


def _refusals(said: Mapping[int, str]) -> Responses:
    return {status: {"model": base.Refusal, "description": what} for status, what in said.items()}


ALWAYS = _refusals(
    {
        400: "What was asked cannot be done.",
        401: "The token is missing or wrong.",
        403: "The Host or the Origin is not ours.",
        408: "The body did not come in time.",
        413: "The body is too long.",
        415: "The body is compressed, or not said to be JSON.",
        429: "Too much is going on; come back later.",
        500: "A mistake of ours.",
    }
)
OF_A_MODEL = _refusals({404: "There is no such model.", 503: "The model could not be loaded."})
OF_A_PULL = _refusals({404: "It cannot be pulled.", 409: "Another is being pulled."})
OF_A_RUN = _refusals({404: "There is no such run.", 409: "Its name is taken, or a run is at work."})
RAW = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
MATRIX: Responses = {
    **OF_A_MODEL,
    200: {
        "model": inspection.Matrix,
        "description": (
            f"Little-endian float32, row after row, at most {inspection.MOST_VALUES:,} numbers; or, for who "
            f"accepts application/json, JSON of at most {inspection.MOST_JSON:,}."
        ),
        "content": RAW,
        "headers": {
            "X-Shape": {
                "description": "Rows and columns of what is raw, such as 12,64; or rows alone.",
                "schema": {"type": "string", "pattern": r"^\d+(,\d+)*$"},
            }
        },
    },
}
MATRICES: Responses = {
    **OF_A_MODEL,
    200: {
        "description": "Little-endian float32, one after the other.",
        "content": RAW,
        "headers": {
            "X-Shape": {
                "description": "The shape of each, such as 12,64;12.",
                "required": True,
                "schema": {"type": "string", "pattern": r"^\d+(,\d+)*(;\d+(,\d+)*)*$"},
            }
        },
    },
}
HEADERS = {
    "401": {"WWW-Authenticate": {"required": True, "schema": {"const": "Bearer"}}},
    "429": {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
    "503": {"Retry-After": {"$ref": "#/components/headers/RetryAfter"}},
}
RETRY_AFTER = {
    "description": "When to come back, in seconds.",
    "required": True,
    "schema": {"type": "integer", "minimum": 1},
}


def events_of(chunk: type[BaseModel]) -> Responses:
    """Of a route that answers at once or, where body, as a stream."""
    said = (
        f"With `stream`, server-sent events: each `data: ` and a {chunk.__name__} as JSON, or a Refusal "
        "where something went wrong in the midst; then `data: [DONE]`."
    )
    either = [{"$ref": SCHEMAS + each.__name__} for each in (chunk, base.Refusal)]
    data = [
        {"const": "[DONE]"},
        {"type": "string", "contentMediaType": "application/json", "contentSchema": {"anyOf": either}},
    ]
    event = {"type": "object", "properties": {"data": {"anyOf": data}}, "required": ["data"]}
    return {**OF_A_MODEL, 200: {"description": said, "content": {"text/event-stream": {"schema": event}}}}


def document(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """Made when it is first asked for."""
    made: dict[str, Any] = {}

    def make() -> dict[str, Any]:
        if not made:
            made.update(FastAPI.openapi(app))
            for path in made["paths"].values():
                for operation in path.values():
                    _mend(operation["responses"])
            _mend_components(made["components"])
            made["security"] = [{"token": []}]
        return made

    return make


def _mend(responses: dict[str, Any]) -> None:
    """A refusal is JSON, whatever else a route gives; and what is not understood is a 400, as it is."""
    responses.pop("422", None)
    for status, answer in responses.items():
        if status >= "400":
            answer["content"] = {"application/json": {"schema": {"$ref": SCHEMAS + "Refusal"}}}
            answer["headers"] = HEADERS.get(status, {})


def _mend_components(components: dict[str, Any]) -> None:
    schemas = components["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    chunk = openai.ChatChunk.model_json_schema(ref_template=SCHEMAS + "{model}", mode="serialization")
    schemas.update(chunk.pop("$defs"))
    schemas["ChatChunk"] = chunk
    components["headers"] = {"RetryAfter": RETRY_AFTER}
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "Printed when the server starts."}
    }
