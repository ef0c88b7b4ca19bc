"""Fixtures that tests of several domains share."""

import pytest

from tests.conftest import Api, Time
from tests.factories.pages import new_site
from tests.factories.products import serve_images
from tests.factories.salon import Salon
from tests.fakes.internet import Internet, Server
from tests.support.restoring import Snapshots


@pytest.fixture
def site(api: Api, snapshots: Snapshots) -> str:
    """The id of an empty site."""
    site_id: str = snapshots.once_upon_equal_rows("site", lambda: new_site(api))
    return site_id


@pytest.fixture
def image_server(net: Internet) -> Server:
    """A fake image host. Paths that are not among its pages are not found."""
    return serve_images(net)


@pytest.fixture
def salon(api: Api, time: Time, snapshots: Snapshots) -> Salon:
    """A salon open from 9 to 18 Moscow time every day.

    It is Friday, 15 January 2027, 15:00 there.
    """
    opened: Salon = snapshots.once_upon_equal_rows("salon", lambda: Salon.opened(api))
    return opened
