"""Print the OpenAPI document without starting a server: `python -m clearhead.server.openapi`."""

from __future__ import annotations

import json
import sys
from typing import Any

from clearhead.server.app import make_api
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_registry import ModelRegistry


def openapi_document() -> dict[str, Any]:
    """Return the description of every route, its parameters and its responses."""
    registry = ModelRegistry([])
    return make_api(registry, ServerMetrics(registry)).openapi()


if __name__ == "__main__":
    json.dump(openapi_document(), sys.stdout)
