"""A salon whose service is paid in advance, for reports of what was sold and paid."""

from tests.domains.notifications.conftest import inbox as inbox  # noqa: PLC0414  a fixture
from tests.domains.payments.conftest import checkout as checkout  # noqa: PLC0414  as above
from tests.fakes.payment_shop import shop as shop  # noqa: PLC0414  as above
