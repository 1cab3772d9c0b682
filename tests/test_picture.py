"""Figures, and the settings they are drawn with."""

import subprocess
import sys

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install '.[figures]'")
DRAW = """
{before}
from clearhead.picture import make_canvas
print(make_canvas(1.0, 1.0).add_subplot().get_facecolor()[:3])
"""
SHIELD = "from clearhead.processes import shield; shield()"


@pytest.mark.parametrize(
    ("before", "color"), [(SHIELD, (1.0, 1.0, 1.0)), ("", (1.0, 0.0, 0.0))], ids=["command", "own program"]
)
def test_only_the_users_own_programs_use_settings_of_the_working_folder(before, color, tmp_path):
    (tmp_path / "matplotlibrc").write_text("axes.facecolor: red\n")
    code = DRAW.format(before=before)
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(color)
