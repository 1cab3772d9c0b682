"""Exported files are opened as the notebooks' saved files are: from the disk, in the same browser."""

from tests.notebook.conftest import axe, models, read  # noqa: F401 (fixtures)
