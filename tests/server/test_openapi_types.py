"""The page's generated types match the OpenAPI document."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from clearhead.server.openapi import openapi_document

WEB = Path(__file__).parents[2] / "web"


@pytest.mark.slow
def test_generated_types_are_up_to_date(tmp_path):
    command = WEB / "node_modules" / ".bin" / "openapi-typescript"
    if shutil.which("node") is None or not command.exists():
        pytest.skip("Node.js or the npm packages are not installed: run `npm ci` in web/")
    (tmp_path / "openapi.json").write_text(json.dumps(openapi_document()), encoding="utf-8")
    # Same as `npm run types`, but with different input and output paths.
    words = shlex.split(json.loads((WEB / "package.json").read_text())["scripts"]["types"])
    assert (words[0], words[-2:]) == (command.name, ["--output", "src/generated/api.ts"])
    made = tmp_path / "api.ts"
    subprocess.run(
        [command, tmp_path / "openapi.json", *words[2:-1], made],
        check=True,
        capture_output=True,
        timeout=300,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert made.read_text() == (WEB / "src" / "generated" / "api.ts").read_text(), "run make types"
