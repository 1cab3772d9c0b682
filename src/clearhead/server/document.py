"""The OpenAPI document, without a server: `python -m clearhead.server.document`."""

from __future__ import annotations

import json
import sys
from typing import Any

from clearhead.server.app import make_routes
from clearhead.server.model_registry import ModelRegistry
from clearhead.server.record import Record


def document() -> dict[str, Any]:
    """Every route, with what it takes and gives."""
    shelf = ModelRegistry([])
    return make_routes(shelf, Record(shelf)).openapi()


if __name__ == "__main__":
    json.dump(document(), sys.stdout)
