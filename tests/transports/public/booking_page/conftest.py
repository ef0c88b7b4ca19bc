"""A booking page on a Monday morning in winter."""

from datetime import UTC, datetime

import pytest

from tests.conftest import Api, Owner, Time
from tests.factories.salon import Salon
from tests.transports.public.booking_page.helpers import BookingPage


@pytest.fixture(autouse=True)
def _in_winter(time: Time) -> None:
    """The time is Monday morning in Moscow."""
    time.now = datetime(2027, 3, 1, 6, tzinfo=UTC)


@pytest.fixture
def salon(api: Api) -> Salon:
    return Salon.opened(api)


@pytest.fixture
def page(owner: Owner, salon: Salon) -> BookingPage:
    return BookingPage.opened(owner, salon)
