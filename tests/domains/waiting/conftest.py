"""Fixtures of waiting lists."""

from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
