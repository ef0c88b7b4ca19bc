"""A booking page on a Monday morning in winter."""

from datetime import UTC, datetime

import pytest

from tests.conftest import Api, Owner, Time
from tests.factories.salon import Salon
from tests.support.restoring import Snapshots
from tests.transports.public.booking_page.helpers import BookingPage


@pytest.fixture(autouse=True)
def _set_winter_time(time: Time) -> None:
    """The time is Monday morning in Moscow."""
    time.now = datetime(2027, 3, 1, 6, tzinfo=UTC)


@pytest.fixture
def salon(api: Api, snapshots: Snapshots) -> Salon:
    new_salon: Salon = snapshots.once("salon of a booking page", lambda: Salon.opened(api))
    return new_salon


@pytest.fixture
def page(owner: Owner, salon: Salon, snapshots: Snapshots) -> BookingPage:
    new_page: BookingPage = snapshots.once("booking page", lambda: BookingPage.opened(owner, salon))
    return new_page
