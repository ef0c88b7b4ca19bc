"""An inbox for e-mails to clients."""

from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
