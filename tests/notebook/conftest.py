"""Fixtures for widget tests: the models of the page's tests."""

from tests.web.conftest import models  # noqa: F401 (fixture)
