"""A salon whose service is paid in advance, and the provider of its payments."""

import pytest

from tests.conftest import Api, Owner, Time
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.domains.notifications.inbox import Inbox
from tests.domains.payments.checkout import Checkout
from tests.fakes.payment_shop import FakeShop, shop  # noqa: F401  a fixture


@pytest.fixture
def checkout(
    owner: Owner,
    api: Api,
    time: Time,
    inbox: Inbox,  # noqa: F811  the fixture
    shop: FakeShop,  # noqa: F811  the fixture
) -> Checkout:
    """A booking page with a service that is paid in advance."""
    return Checkout.opened(owner, api, time, shop, inbox)
