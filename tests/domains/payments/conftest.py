"""A salon whose service is paid in advance, and the provider of its payments."""

import pytest

from tests.conftest import Api, Owner, Time
from tests.domains.notifications.conftest import inbox  # noqa: F401  a fixture
from tests.domains.notifications.inbox import Inbox
from tests.domains.payments.checkout import Checkout
from tests.factories.salon import Salon
from tests.fakes.payment_shop import FakeShop, shop  # noqa: F401  a fixture
from tests.support.restoring import Snapshots


@pytest.fixture
def checkout(
    owner: Owner,
    api: Api,
    time: Time,
    inbox: Inbox,  # noqa: F811  the fixture
    shop: FakeShop,  # noqa: F811  the fixture
    snapshots: Snapshots,
) -> Checkout:
    """A booking page with a service that is paid in advance."""

    def make() -> tuple[Salon, list[str]]:
        return Checkout.opened(owner, api, time, shop, inbox).salon, [*shop.calls]

    salon, shop.calls[:] = snapshots.once_upon_equal_rows("checkout", make)
    return Checkout(owner, salon, time, shop, inbox)
