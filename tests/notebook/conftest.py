"""Fixtures for widget tests: the models from the page tests."""

from tests.web.conftest import models  # noqa: F401 (fixture)
