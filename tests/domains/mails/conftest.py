"""An inbox for e-mails of the service."""

from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
