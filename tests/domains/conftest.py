"""Fixtures that tests of several domains share."""

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.domains.booking_page.flows import visitor_shares
from tests.conftest import Api, Time
from tests.domains.notifications.clients import BOOK, visitor
from tests.domains.notifications.inbox import Inbox
from tests.factories.booking_links import DAYS
from tests.factories.forms import new_form
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
def form(api: Api) -> str:
    """The id of a form, whose submissions are leads."""
    return new_form(api)


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


@pytest.fixture
def salon_without_free_proofs(
    api: Api,
    inbox: Inbox,
    time: Time,
    monkeypatch: pytest.MonkeyPatch,
    reload_settings: Any,
    snapshots: Snapshots,
) -> Salon:
    """A salon whose visitor has made all bookings of this hour that need no proof."""
    monkeypatch.setenv("RATE_LIMIT_SCALE", "1")
    reload_settings()
    time.pass_by(days=1)
    limit = replace(visitor_shares.UNPROVED, max_requests=3)
    monkeypatch.setattr(visitor_shares, "UNPROVED", limit)

    def make() -> Salon:
        opened = Salon.opened(api, [{"capacity": 4}])
        for number in range(3):
            visitor.post(BOOK, opened.order(DAYS[number], f"V {number}"))
        return opened

    salon: Salon = snapshots.once_upon_equal_rows("a salon without free proofs", make)
    return salon
