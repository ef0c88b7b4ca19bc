"""Bookings that are confirmed by the link in an e-mail."""

import re
from dataclasses import replace
from typing import Any

import pytest

from chalicelib.application.invoke import invoke
from chalicelib.core.ids import new_id
from chalicelib.core.operations import REGISTRY
from chalicelib.core.principals import VisitorPrincipal
from chalicelib.domains.booking_page.flows import visitor_shares
from chalicelib.domains.booking_page.store import requested_bookings
from chalicelib.domains.bookings.flows import booking_links
from chalicelib.gateways import mail
from tests.conftest import Answer
from tests.domains.notifications.clients import BOOK, visitor
from tests.domains.notifications.inbox import Inbox, text_of
from tests.factories.event_runs import run_until_idle
from tests.factories.salon import Salon

DAYS = [f"2027-03-{day:02}T12:00:00Z" for day in range(2, 20)]
EVE = "eve@example.com"
VISITOR = VisitorPrincipal(visitor="v")
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def requested(
    workspace_id: str, on_page: dict[str, Any], caller: VisitorPrincipal = VISITOR
) -> str:
    """Request a booking on a booking page that needs a proof, and return the link's token."""
    no_share = replace(visitor_shares.UNPROVED, max_requests=0)
    operation = REGISTRY["book_on_page"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(visitor_shares, "UNPROVED", no_share)
        patch.setattr(mail, "is_on", lambda: True)
        patch.setattr(mail, "takes", lambda _: True)
        invoke(operation, caller, lambda: on_page, request_id=new_id())
    (row,) = requested_bookings.naming_awaited(workspace_id, [on_page["client"]["email"]])
    return booking_links.book_token(workspace_id, request_id=row.request_id)


def request_booking(salon: Salon, start: str = DAYS[5], email: str = EVE, **fields: Any) -> Answer:
    """Request a booking, and return the response."""
    contact = {"name": "Eve Kurz", "email": email}
    return visitor.call("POST", BOOK, salon.order(start) | {"client": contact} | fields)


def link(inbox: Inbox, email: str = EVE) -> str:
    """Return the path of the newest confirmation link in the emails to an address."""
    run_until_idle()
    texts = [text_of(message) for message in inbox.mails if message["To"] == email]
    matches = [re.search(r"/booking/confirm/[\w=-]{64}", body) for body in texts]
    (*_, last) = filter(None, matches)
    return last[0]


def follow(path: str) -> Answer:
    """Press the button on the page of a link."""
    return visitor.call("POST", path, b"", FORM)


def clients_of(salon: Salon) -> list[str]:
    """Return the e-mail addresses of all bookings of a salon."""
    bookings = salon.api.get(f"/api/bookings/list?serviceId={salon.service}&size=100")["bookings"]
    return sorted(booking["client"]["email"] or "" for booking in bookings)
