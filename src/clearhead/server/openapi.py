"""The OpenAPI document, without a server: `python -m clearhead.server.openapi`."""

from __future__ import annotations

import json
import sys
from typing import Any

from clearhead.server.app import make_api
from clearhead.server.metrics import ServerMetrics
from clearhead.server.model_registry import ModelRegistry


def document() -> dict[str, Any]:
    """Every route, with what it takes and gives."""
    registry = ModelRegistry([])
    return make_api(registry, ServerMetrics(registry)).openapi()


if __name__ == "__main__":
    json.dump(document(), sys.stdout)
