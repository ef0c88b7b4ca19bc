"""A salon on a Monday morning in winter."""

from datetime import UTC, datetime

import pytest

from tests.conftest import Api, Time
from tests.factories.salon import Salon


@pytest.fixture(autouse=True)
def _set_winter_time(time: Time) -> None:
    """The time is Monday morning in Moscow."""
    time.now = datetime(2027, 3, 1, 6, tzinfo=UTC)


@pytest.fixture
def salon(api: Api) -> Salon:
    return Salon.opened(api)
